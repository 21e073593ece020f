"""String types without expressions, and the format of each; messages quote their descriptions."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta

__all__ = [
    "ApiVersion",
    "ClockTime",
    "DnsName",
    "Duration",
    "FieldPath",
    "Identifier",
    "KindName",
    "Network",
    "Plain",
]

Identifier: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[a-z][A-Za-z0-9]{0,62}$",
        description="a name for expressions: letters and digits, starting with a lowercase letter",
    ),
]
DnsName: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$",
        description="a name of a Kubernetes object: lowercase letters, digits, dashes and dots",
    ),
]
FieldPath: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^\.?[A-Za-z_][\w-]*(\.[\w-]+)*$",
        description="a path of field names such as spec.schedule, without an expression",
    ),
]
Duration: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^(\d{1,9}(\.\d{1,3})?(ms|mo|s|m|h|d|w|y))+$",
        description="a duration such as 90s, 5m, 12h or 90d",
    ),
]
ClockTime: TypeAlias = Annotated[
    str, Meta(pattern=r"^([01]\d|2[0-3]):[0-5]\d$", description="a time of day such as 09:00")
]
Network: TypeAlias = Annotated[
    str, Meta(pattern=r"^[0-9A-Fa-f.:]+(/\d{1,3})?$", description="a network such as 10.0.0.0/8")
]
ApiVersion: TypeAlias = Annotated[
    str, Meta(pattern=r"^([a-z0-9.-]+/)?v[0-9][a-z0-9]*$", description="a group and version such as apps/v1")
]
KindName: TypeAlias = Annotated[str, Meta(pattern=r"^[A-Z][A-Za-z0-9]{0,62}$", description="a kind such as Deployment")]
Plain: TypeAlias = Annotated[str, Meta(pattern=r"^(?![\s\S]*\{\{)", description="a string without expressions")]
