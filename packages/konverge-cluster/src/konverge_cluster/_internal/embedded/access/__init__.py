"""Authentication and authorization: tokens, users, roles and access reviews.

The input is a request with its headers; the output is the user who sends it, or an error. Without authentication (the
default) every client is one administrator and may do everything. With ``authorization="rbac"`` the stored Roles and
bindings decide, as on a real server.
"""
