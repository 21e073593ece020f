import json

from konverge.crd import crd_manifest
from konverge.kube import Object
from tests.crd.webapps import Policy, Queue, WebApp


def root_schema(cls: type) -> Object:
    schema: Object = crd_manifest(cls)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def spec_schema(cls: type) -> Object:
    schema: Object = root_schema(cls)["properties"]["spec"]
    return schema


def test_names_and_scope() -> None:
    manifest = crd_manifest(WebApp)

    assert manifest["metadata"] == {"name": "webapps.crd.konverge.test"}
    assert manifest["spec"]["group"] == "crd.konverge.test"
    assert manifest["spec"]["scope"] == "Namespaced"
    assert manifest["spec"]["names"] == {
        "kind": "WebApp",
        "listKind": "WebAppList",
        "plural": "webapps",
        "singular": "webapp",
        "shortNames": ["wa"],
        "categories": ["all"],
    }
    assert crd_manifest(Queue)["spec"]["scope"] == "Cluster"


def test_the_one_version_is_served_and_has_a_status_subresource() -> None:
    (version,) = crd_manifest(WebApp)["spec"]["versions"]

    assert (version["name"], version["served"], version["storage"]) == ("v1alpha1", True, True)
    assert version["subresources"] == {"status": {}}


def test_columns_show_readiness_and_age_unless_told_otherwise() -> None:
    (version,) = crd_manifest(WebApp)["spec"]["versions"]
    assert [column["name"] for column in version["additionalPrinterColumns"]] == ["Ready", "Reason", "Age"]

    (version,) = crd_manifest(Queue)["spec"]["versions"]
    assert "additionalPrinterColumns" not in version


def test_fields_without_a_default_are_required() -> None:
    assert root_schema(WebApp)["required"] == ["spec"]
    assert spec_schema(WebApp)["required"] == ["image"]
    assert "required" not in root_schema(Queue), "its spec has a default"
    assert root_schema(Queue)["properties"]["spec"]["default"] == {"maxLength": 100, "labels": {}}


def test_every_kind_of_field_has_its_schema() -> None:
    assert spec_schema(WebApp)["properties"] == {
        "image": {"type": "string", "minLength": 1, "description": "The container image."},
        "replicas": {"type": "integer", "format": "int64", "minimum": 0, "maximum": 50, "default": 1},
        "tracingEnabled": {"type": "boolean", "default": False},
        "tier": {"type": "string", "enum": ["free", "paid"], "default": "free"},
        "strategy": {"type": "string", "enum": ["Recreate", "RollingUpdate"]},
        "maxUnavailable": {"x-kubernetes-int-or-string": True, "default": 1},
        "ratio": {"type": "number", "format": "double", "minimum": 0.0, "exclusiveMinimum": True, "nullable": True},
        "ports": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "port": {"type": "integer", "format": "int64", "minimum": 1, "maximum": 65535},
                    "appProtocol": {"type": "string", "nullable": True},
                },
                "required": ["name", "port"],
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "default": [],
        },
        "zones": {
            "type": "array",
            "items": {"type": "string"},
            "x-kubernetes-list-type": "set",
            "default": ["a", "b"],
        },
        "resources": {
            "type": "object",
            "description": "What one replica gets.",
            "properties": {
                "cpuLimit": {"type": "string", "default": "500m"},
                "extraLimits": {"type": "object", "additionalProperties": {"type": "string"}, "default": {}},
            },
            "default": {"cpuLimit": "500m", "extraLimits": {}},
        },
        "gracePeriod": {
            "type": "string",
            "format": "duration",
            "pattern": r"^-?([0-9]+(\.[0-9]+)?(ms|s|m|h))+$",
            "maxLength": 64,
            "default": "5m",
        },
        "notBefore": {"type": "string", "format": "date-time", "nullable": True},
        "values": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "default": {}},
    }


def test_cel_rules_stand_on_the_field_they_were_given_to() -> None:
    assert spec_schema(WebApp)["x-kubernetes-validations"] == [
        {"rule": "self.replicas < 40 || self.tier == 'paid'", "message": "40 replicas are paid for"}
    ]


def test_conditions_are_a_list_keyed_by_type() -> None:
    status = root_schema(WebApp)["properties"]["status"]

    conditions = status["properties"]["conditions"]
    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    assert conditions["items"]["properties"]["status"]["enum"] == ["True", "False", "Unknown"]


def test_declared_status_fields_stand_beside_the_conditions() -> None:
    status = root_schema(Queue)["properties"]["status"]

    assert list(status["properties"]) == ["conditions", "observedGeneration", "currentLength"]
    assert "nullable" not in status


def test_names_that_a_struct_gives_are_kept() -> None:
    assert list(spec_schema(Policy)["properties"]) == ["allowEverything", "peerNames"]


def test_the_docstring_describes_the_kind_and_a_generated_one_does_not() -> None:
    assert root_schema(WebApp)["description"] == "A web application."
    assert "description" not in spec_schema(WebApp), "a dataclass writes its signature there"


def test_the_manifest_is_the_same_text_each_time() -> None:
    first, second = json.dumps(crd_manifest(WebApp)), json.dumps(crd_manifest(WebApp))

    assert first == second
    assert "$ref" not in first


def test_the_manifest_belongs_to_the_caller() -> None:
    crd_manifest(WebApp)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].clear()

    assert "spec" in root_schema(WebApp)["properties"]
