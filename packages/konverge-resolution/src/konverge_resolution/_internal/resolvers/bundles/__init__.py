"""Definitions in registries: a layer of an image, as Tekton's bundles have them, or a file of a plain artefact.

A reference comes in as parameters (`parameters`, `image_reference`). The registry is asked for a manifest and for one
layer of it (`registry_client`), and is shown first what it wants to see (`registry_auth`, with `auth_challenges` and
`keychains`). What comes is compared with its digest before it is read (`manifests`), the layer is found
(`layer_selection`) and unpacked within a bound (`layers`); what is wrong with it, `failures` says. When a policy asks
for signatures, those that the registry keeps beside the image come along (`attached_signatures`).

No byte counts that a digest does not vouch for, from the manifest that the reference or the tag names down to the
layer; and no credential goes anywhere but to the registry that its Secret names, and to the place of its tokens.
"""

from konverge_resolution._internal.resolvers.bundles.resolver import INDEX_DIGEST, BundlesResolver

__all__ = ["INDEX_DIGEST", "BundlesResolver"]
