"""The objects of the API server's own kinds as TypedDicts: ``apps_v1.Deployment``, ``core_v1.PodSpec`` and the like.

One module for each group and version. Editors complete the fields, type checkers find a wrong one or a required one
that is missing. At run time they are plain dicts, and a primitive takes them as it takes any mapping. A module imports
``typing`` and its neighbours alone; imported under ``typing.TYPE_CHECKING`` it costs nothing.

``konverge types`` writes the same for custom resources.
"""
