"""What a real cluster has and the embedded one has not.

The input is the embedded cluster itself (its resources and controllers), the recorded resources of a real API server,
and a table of fields without effect. The output is one list for users (`limitation_list`), warnings in the responses
to writes that use such a field (`ignored_fields`), and the text of the response for a path that only a real API server
serves (`unserved_resources`).

Invariant: whatever differs is refused, warned of, or at least in the list.
"""
