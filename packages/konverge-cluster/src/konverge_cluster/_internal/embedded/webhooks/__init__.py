"""The webhooks that the server calls: admission (validating, mutating) and conversion of custom resources.

The input is a request; the output is the necessary calls as data (`pending_calls`), and the request continues with
their replies. The package builds requests and interprets responses without I/O; `webhook_caller` makes the calls over
HTTPS.

Invariant: webhooks are called before anything is stored, so a rejection changes nothing.
"""
