"""PodSecurity admission: the labels of a namespace decide which pods it accepts, and which cause a warning.

The input is a write of a Pod, of a workload or of a Namespace, and the labels ``pod-security.kubernetes.io/*`` of the
namespace. The output is an error, or warnings for the response. `security_policy` parses the labels, `security_checks`
and `restricted_checks` contain the checks of the Pod Security Standards, `security_admission` applies them to requests.
"""

from konverge_cluster._internal.embedded.pod_security.security_admission import check_pod_security

__all__ = ["check_pod_security"]
