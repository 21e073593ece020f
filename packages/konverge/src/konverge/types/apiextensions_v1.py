"""The objects of io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1 as TypedDicts, for type checkers and editors.

Written by tools/schemas/generate.py from the OpenAPI documents of a kube-apiserver; not to be edited.
"""

from typing import Any, Literal, Required, TypedDict

from konverge.types import meta_v1


class CustomResourceColumnDefinition(TypedDict, total=False):
    description: str
    format: str
    jsonPath: Required[str]
    name: Required[str]
    priority: int
    type: Required[str]


class ServiceReference(TypedDict, total=False):
    name: Required[str]
    namespace: Required[str]
    path: str
    port: int


class WebhookClientConfig(TypedDict, total=False):
    caBundle: str
    service: ServiceReference
    url: str


class WebhookConversion(TypedDict, total=False):
    clientConfig: WebhookClientConfig
    conversionReviewVersions: Required[list[str]]


class CustomResourceConversion(TypedDict, total=False):
    strategy: Required[str]
    webhook: WebhookConversion


class CustomResourceDefinitionNames(TypedDict, total=False):
    categories: list[str]
    kind: Required[str]
    listKind: str
    plural: Required[str]
    shortNames: list[str]
    singular: str


class CustomResourceSubresourceScale(TypedDict, total=False):
    labelSelectorPath: str
    specReplicasPath: Required[str]
    statusReplicasPath: Required[str]


class CustomResourceSubresources(TypedDict, total=False):
    scale: CustomResourceSubresourceScale
    status: dict[str, Any]


class ExternalDocumentation(TypedDict, total=False):
    description: str
    url: str


class ValidationRule(TypedDict, total=False):
    fieldPath: str
    message: str
    messageExpression: str
    optionalOldSelf: bool
    reason: Literal["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"]
    rule: Required[str]


JSONSchemaProps = TypedDict(
    "JSONSchemaProps",
    {
        "$ref": str,
        "$schema": str,
        "additionalItems": Any,
        "additionalProperties": Any,
        "allOf": "list[JSONSchemaProps]",
        "anyOf": "list[JSONSchemaProps]",
        "default": Any,
        "definitions": "dict[str, JSONSchemaProps]",
        "dependencies": dict[str, Any],
        "description": str,
        "enum": list[Any],
        "example": Any,
        "exclusiveMaximum": bool,
        "exclusiveMinimum": bool,
        "externalDocs": ExternalDocumentation,
        "format": str,
        "id": str,
        "items": Any,
        "maxItems": int,
        "maxLength": int,
        "maxProperties": int,
        "maximum": float,
        "minItems": int,
        "minLength": int,
        "minProperties": int,
        "minimum": float,
        "multipleOf": float,
        "not": "JSONSchemaProps",
        "nullable": bool,
        "oneOf": "list[JSONSchemaProps]",
        "pattern": str,
        "patternProperties": "dict[str, JSONSchemaProps]",
        "properties": "dict[str, JSONSchemaProps]",
        "required": list[str],
        "title": str,
        "type": str,
        "uniqueItems": bool,
        "x-kubernetes-embedded-resource": bool,
        "x-kubernetes-int-or-string": bool,
        "x-kubernetes-list-map-keys": list[str],
        "x-kubernetes-list-type": str,
        "x-kubernetes-map-type": str,
        "x-kubernetes-preserve-unknown-fields": bool,
        "x-kubernetes-validations": list[ValidationRule],
    },
    total=False,
)


class CustomResourceValidation(TypedDict, total=False):
    openAPIV3Schema: JSONSchemaProps


class SelectableField(TypedDict, total=False):
    jsonPath: Required[str]


class CustomResourceDefinitionVersion(TypedDict, total=False):
    additionalPrinterColumns: list[CustomResourceColumnDefinition]
    deprecated: bool
    deprecationWarning: str
    name: Required[str]
    schema: CustomResourceValidation
    selectableFields: list[SelectableField]
    served: Required[bool]
    storage: Required[bool]
    subresources: CustomResourceSubresources


class CustomResourceDefinitionSpec(TypedDict, total=False):
    conversion: CustomResourceConversion
    group: Required[str]
    names: Required[CustomResourceDefinitionNames]
    preserveUnknownFields: bool
    scope: Required[str]
    versions: Required[list[CustomResourceDefinitionVersion]]


class CustomResourceDefinitionCondition(TypedDict, total=False):
    lastTransitionTime: str
    message: str
    observedGeneration: int
    reason: str
    status: Required[str]
    type: Required[str]


class CustomResourceDefinitionStatus(TypedDict, total=False):
    acceptedNames: CustomResourceDefinitionNames
    conditions: list[CustomResourceDefinitionCondition]
    observedGeneration: int
    storedVersions: list[str]


class CustomResourceDefinition(TypedDict, total=False):
    apiVersion: Literal["apiextensions.k8s.io/v1"]
    kind: Literal["CustomResourceDefinition"]
    metadata: meta_v1.ObjectMeta
    spec: Required[CustomResourceDefinitionSpec]
    status: CustomResourceDefinitionStatus
