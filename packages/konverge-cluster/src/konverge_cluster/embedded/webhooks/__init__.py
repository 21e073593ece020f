"""The webhooks that the server calls: admission (validating, mutating) and the conversion of custom resources.

A request comes in; out go the calls that it needs, as data (`pending_calls`), and with their replies the request goes
on. What is asked and what an answer means is decided here without I/O; `webhook_caller` makes the calls over HTTPS.

Invariant: a webhook is asked before anything is stored, so that its no leaves nothing behind.
"""
