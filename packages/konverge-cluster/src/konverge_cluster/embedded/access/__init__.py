"""Who may do what: tokens, users, roles, and the questions about them.

A request comes in with its headers; out goes the user who sends it, or the refusal. Where nobody has to sign in
(the default) everybody is one administrator and everything is allowed; with ``authorization="rbac"`` the stored Roles
and bindings decide, as on a real server.
"""
