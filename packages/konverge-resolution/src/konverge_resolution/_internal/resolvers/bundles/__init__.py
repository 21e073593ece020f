"""Definitions in registries: layers of Tekton bundles, or files of plain artifacts.

The input is a reference's parameters (`parameters`, `image_reference`). The resolver requests a manifest and one of
its layers (`registry_client`), with a credential if the registry requires one (`registry_auth`, `auth_challenges`,
`keychains`). It verifies the digest before it parses a manifest (`manifests`), selects the layer (`layer_selection`)
and unpacks it within a size limit (`layers`); `failures` builds the errors. If a policy requires signatures, the
resolver also fetches those beside the image (`attached_signatures`).

Two invariants: every byte, from the manifest down to the layer, matches a verified digest; and a credential is sent
only to the registry that its Secret names, and to the token server of that registry.
"""

from konverge_resolution._internal.resolvers.bundles.resolver import INDEX_DIGEST, BundlesResolver

__all__ = ["INDEX_DIGEST", "BundlesResolver"]
