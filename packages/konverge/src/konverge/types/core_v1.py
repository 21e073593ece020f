"""The objects of io.k8s.api.core.v1 as TypedDicts, for type checkers and editors.

Written by tools/schemas/generate.py from the OpenAPI documents of a kube-apiserver; not to be edited.
"""

from typing import Literal, Required, TypedDict

from konverge.types import meta_v1


class AWSElasticBlockStoreVolumeSource(TypedDict, total=False):
    fsType: str
    partition: int
    readOnly: bool
    volumeID: Required[str]


class NodeSelectorRequirement(TypedDict, total=False):
    key: Required[str]
    operator: Required[Literal["DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"]]
    values: list[str]


class NodeSelectorTerm(TypedDict, total=False):
    matchExpressions: list[NodeSelectorRequirement]
    matchFields: list[NodeSelectorRequirement]


class NodeSelector(TypedDict, total=False):
    nodeSelectorTerms: Required[list[NodeSelectorTerm]]


class PreferredSchedulingTerm(TypedDict, total=False):
    preference: Required[NodeSelectorTerm]
    weight: Required[int]


class NodeAffinity(TypedDict, total=False):
    preferredDuringSchedulingIgnoredDuringExecution: list[PreferredSchedulingTerm]
    requiredDuringSchedulingIgnoredDuringExecution: NodeSelector


class PodAffinityTerm(TypedDict, total=False):
    labelSelector: meta_v1.LabelSelector
    matchLabelKeys: list[str]
    mismatchLabelKeys: list[str]
    namespaceSelector: meta_v1.LabelSelector
    namespaces: list[str]
    topologyKey: Required[str]


class WeightedPodAffinityTerm(TypedDict, total=False):
    podAffinityTerm: Required[PodAffinityTerm]
    weight: Required[int]


class PodAffinity(TypedDict, total=False):
    preferredDuringSchedulingIgnoredDuringExecution: list[WeightedPodAffinityTerm]
    requiredDuringSchedulingIgnoredDuringExecution: list[PodAffinityTerm]


class PodAntiAffinity(TypedDict, total=False):
    preferredDuringSchedulingIgnoredDuringExecution: list[WeightedPodAffinityTerm]
    requiredDuringSchedulingIgnoredDuringExecution: list[PodAffinityTerm]


class Affinity(TypedDict, total=False):
    nodeAffinity: NodeAffinity
    podAffinity: PodAffinity
    podAntiAffinity: PodAntiAffinity


class AppArmorProfile(TypedDict, total=False):
    localhostProfile: str
    type: Required[Literal["Localhost", "RuntimeDefault", "Unconfined"]]


class AttachedVolume(TypedDict, total=False):
    devicePath: Required[str]
    name: Required[str]


class AzureDiskVolumeSource(TypedDict, total=False):
    cachingMode: Literal["None", "ReadOnly", "ReadWrite"]
    diskName: Required[str]
    diskURI: Required[str]
    fsType: str
    kind: Literal["Dedicated", "Managed", "Shared"]
    readOnly: bool


class AzureFilePersistentVolumeSource(TypedDict, total=False):
    readOnly: bool
    secretName: Required[str]
    secretNamespace: str
    shareName: Required[str]


class AzureFileVolumeSource(TypedDict, total=False):
    readOnly: bool
    secretName: Required[str]
    shareName: Required[str]


class ObjectReference(TypedDict, total=False):
    apiVersion: str
    fieldPath: str
    kind: str
    name: str
    namespace: str
    resourceVersion: str
    uid: str


class Binding(TypedDict, total=False):
    apiVersion: Literal["v1"]
    kind: Literal["Binding"]
    metadata: meta_v1.ObjectMeta
    target: Required[ObjectReference]


class SecretReference(TypedDict, total=False):
    name: str
    namespace: str


class CSIPersistentVolumeSource(TypedDict, total=False):
    controllerExpandSecretRef: SecretReference
    controllerPublishSecretRef: SecretReference
    driver: Required[str]
    fsType: str
    nodeExpandSecretRef: SecretReference
    nodePublishSecretRef: SecretReference
    nodeStageSecretRef: SecretReference
    readOnly: bool
    volumeAttributes: dict[str, str]
    volumeHandle: Required[str]


class LocalObjectReference(TypedDict, total=False):
    name: str


class CSIVolumeSource(TypedDict, total=False):
    driver: Required[str]
    fsType: str
    nodePublishSecretRef: LocalObjectReference
    readOnly: bool
    volumeAttributes: dict[str, str]


class Capabilities(TypedDict, total=False):
    add: list[str]
    drop: list[str]


class CephFSPersistentVolumeSource(TypedDict, total=False):
    monitors: Required[list[str]]
    path: str
    readOnly: bool
    secretFile: str
    secretRef: SecretReference
    user: str


class CephFSVolumeSource(TypedDict, total=False):
    monitors: Required[list[str]]
    path: str
    readOnly: bool
    secretFile: str
    secretRef: LocalObjectReference
    user: str


class CinderPersistentVolumeSource(TypedDict, total=False):
    fsType: str
    readOnly: bool
    secretRef: SecretReference
    volumeID: Required[str]


class CinderVolumeSource(TypedDict, total=False):
    fsType: str
    readOnly: bool
    secretRef: LocalObjectReference
    volumeID: Required[str]


class ClientIPConfig(TypedDict, total=False):
    timeoutSeconds: int


class ClusterTrustBundleProjection(TypedDict, total=False):
    labelSelector: meta_v1.LabelSelector
    name: str
    optional: bool
    path: Required[str]
    signerName: str


class ComponentCondition(TypedDict, total=False):
    error: str
    message: str
    status: Required[str]
    type: Required[str]


class ComponentStatus(TypedDict, total=False):
    apiVersion: Literal["v1"]
    kind: Literal["ComponentStatus"]
    metadata: meta_v1.ObjectMeta
    conditions: list[ComponentCondition]


class ConfigMap(TypedDict, total=False):
    apiVersion: Literal["v1"]
    kind: Literal["ConfigMap"]
    metadata: meta_v1.ObjectMeta
    binaryData: dict[str, str]
    data: dict[str, str]
    immutable: bool


class ConfigMapEnvSource(TypedDict, total=False):
    name: str
    optional: bool


class ConfigMapKeySelector(TypedDict, total=False):
    key: Required[str]
    name: str
    optional: bool


class ConfigMapNodeConfigSource(TypedDict, total=False):
    kubeletConfigKey: Required[str]
    name: Required[str]
    namespace: Required[str]
    resourceVersion: str
    uid: str


class KeyToPath(TypedDict, total=False):
    key: Required[str]
    mode: int
    path: Required[str]


class ConfigMapProjection(TypedDict, total=False):
    items: list[KeyToPath]
    name: str
    optional: bool


class ConfigMapVolumeSource(TypedDict, total=False):
    defaultMode: int
    items: list[KeyToPath]
    name: str
    optional: bool


class ContainerPort(TypedDict, total=False):
    containerPort: Required[int]
    hostIP: str
    hostPort: int
    name: str
    protocol: Literal["SCTP", "TCP", "UDP"]


class ContainerResizePolicy(TypedDict, total=False):
    resourceName: Required[str]
    restartPolicy: Required[str]


class ContainerRestartRuleOnExitCodes(TypedDict, total=False):
    operator: Required[str]
    values: list[int]


class ContainerRestartRule(TypedDict, total=False):
    action: Required[str]
    exitCodes: ContainerRestartRuleOnExitCodes


class SecretEnvSource(TypedDict, total=False):
    name: str
    optional: bool


class EnvFromSource(TypedDict, total=False):
    configMapRef: ConfigMapEnvSource
    prefix: str
    secretRef: SecretEnvSource


class FileKeySelector(TypedDict, total=False):
    key: Required[str]
    optional: bool
    path: Required[str]
    volumeName: Required[str]


class ObjectFieldSelector(TypedDict, total=False):
    apiVersion: str
    fieldPath: Required[str]


class ResourceFieldSelector(TypedDict, total=False):
    containerName: str
    divisor: meta_v1.Quantity
    resource: Required[str]


class SecretKeySelector(TypedDict, total=False):
    key: Required[str]
    name: str
    optional: bool


class EnvVarSource(TypedDict, total=False):
    configMapKeyRef: ConfigMapKeySelector
    fieldRef: ObjectFieldSelector
    fileKeyRef: FileKeySelector
    resourceFieldRef: ResourceFieldSelector
    secretKeyRef: SecretKeySelector


class EnvVar(TypedDict, total=False):
    name: Required[str]
    value: str
    valueFrom: EnvVarSource


class ExecAction(TypedDict, total=False):
    command: list[str]


class HTTPHeader(TypedDict, total=False):
    name: Required[str]
    value: Required[str]


class HTTPGetAction(TypedDict, total=False):
    host: str
    httpHeaders: list[HTTPHeader]
    path: str
    port: Required[int | str]
    scheme: Literal["HTTP", "HTTPS"]


class SleepAction(TypedDict, total=False):
    seconds: Required[int]


class TCPSocketAction(TypedDict, total=False):
    host: str
    port: Required[int | str]


class LifecycleHandler(TypedDict, total=False):
    exec: ExecAction
    httpGet: HTTPGetAction
    sleep: SleepAction
    tcpSocket: TCPSocketAction


class Lifecycle(TypedDict, total=False):
    postStart: LifecycleHandler
    preStop: LifecycleHandler
    stopSignal: Literal[
        "SIGABRT",
        "SIGALRM",
        "SIGBUS",
        "SIGCHLD",
        "SIGCLD",
        "SIGCONT",
        "SIGFPE",
        "SIGHUP",
        "SIGILL",
        "SIGINT",
        "SIGIO",
        "SIGIOT",
        "SIGKILL",
        "SIGPIPE",
        "SIGPOLL",
        "SIGPROF",
        "SIGPWR",
        "SIGQUIT",
        "SIGRTMAX",
        "SIGRTMAX-1",
        "SIGRTMAX-10",
        "SIGRTMAX-11",
        "SIGRTMAX-12",
        "SIGRTMAX-13",
        "SIGRTMAX-14",
        "SIGRTMAX-2",
        "SIGRTMAX-3",
        "SIGRTMAX-4",
        "SIGRTMAX-5",
        "SIGRTMAX-6",
        "SIGRTMAX-7",
        "SIGRTMAX-8",
        "SIGRTMAX-9",
        "SIGRTMIN",
        "SIGRTMIN+1",
        "SIGRTMIN+10",
        "SIGRTMIN+11",
        "SIGRTMIN+12",
        "SIGRTMIN+13",
        "SIGRTMIN+14",
        "SIGRTMIN+15",
        "SIGRTMIN+2",
        "SIGRTMIN+3",
        "SIGRTMIN+4",
        "SIGRTMIN+5",
        "SIGRTMIN+6",
        "SIGRTMIN+7",
        "SIGRTMIN+8",
        "SIGRTMIN+9",
        "SIGSEGV",
        "SIGSTKFLT",
        "SIGSTOP",
        "SIGSYS",
        "SIGTERM",
        "SIGTRAP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGUSR1",
        "SIGUSR2",
        "SIGVTALRM",
        "SIGWINCH",
        "SIGXCPU",
        "SIGXFSZ",
    ]


class GRPCAction(TypedDict, total=False):
    port: Required[int]
    service: str


class Probe(TypedDict, total=False):
    exec: ExecAction
    failureThreshold: int
    grpc: GRPCAction
    httpGet: HTTPGetAction
    initialDelaySeconds: int
    periodSeconds: int
    successThreshold: int
    tcpSocket: TCPSocketAction
    terminationGracePeriodSeconds: int
    timeoutSeconds: int


class ResourceClaim(TypedDict, total=False):
    name: Required[str]
    request: str


class ResourceRequirements(TypedDict, total=False):
    claims: list[ResourceClaim]
    limits: dict[str, meta_v1.Quantity]
    requests: dict[str, meta_v1.Quantity]


class SELinuxOptions(TypedDict, total=False):
    level: str
    role: str
    type: str
    user: str


class SeccompProfile(TypedDict, total=False):
    localhostProfile: str
    type: Required[Literal["Localhost", "RuntimeDefault", "Unconfined"]]


class WindowsSecurityContextOptions(TypedDict, total=False):
    gmsaCredentialSpec: str
    gmsaCredentialSpecName: str
    hostProcess: bool
    runAsUserName: str


class SecurityContext(TypedDict, total=False):
    allowPrivilegeEscalation: bool
    appArmorProfile: AppArmorProfile
    capabilities: Capabilities
    privileged: bool
    procMount: Literal["Default", "Unmasked"]
    readOnlyRootFilesystem: bool
    runAsGroup: int
    runAsNonRoot: bool
    runAsUser: int
    seLinuxOptions: SELinuxOptions
    seccompProfile: SeccompProfile
    windowsOptions: WindowsSecurityContextOptions


class VolumeDevice(TypedDict, total=False):
    devicePath: Required[str]
    name: Required[str]


class VolumeMount(TypedDict, total=False):
    mountPath: Required[str]
    mountPropagation: Literal["Bidirectional", "HostToContainer", "None"]
    name: Required[str]
    readOnly: bool
    recursiveReadOnly: str
    subPath: str
    subPathExpr: str


class Container(TypedDict, total=False):
    args: list[str]
    command: list[str]
    env: list[EnvVar]
    envFrom: list[EnvFromSource]
    image: str
    imagePullPolicy: Literal["Always", "IfNotPresent", "Never"]
    lifecycle: Lifecycle
    livenessProbe: Probe
    name: Required[str]
    ports: list[ContainerPort]
    readinessProbe: Probe
    resizePolicy: list[ContainerResizePolicy]
    resources: ResourceRequirements
    restartPolicy: str
    restartPolicyRules: list[ContainerRestartRule]
    securityContext: SecurityContext
    startupProbe: Probe
    stdin: bool
    stdinOnce: bool
    terminationMessagePath: str
    terminationMessagePolicy: Literal["FallbackToLogsOnError", "File"]
    tty: bool
    volumeDevices: list[VolumeDevice]
    volumeMounts: list[VolumeMount]
    workingDir: str


class ContainerExtendedResourceRequest(TypedDict, total=False):
    containerName: Required[str]
    requestName: Required[str]
    resourceName: Required[str]


class ContainerImage(TypedDict, total=False):
    names: list[str]
    sizeBytes: int


class ContainerStateRunning(TypedDict, total=False):
    startedAt: str


class ContainerStateTerminated(TypedDict, total=False):
    containerID: str
    exitCode: Required[int]
    finishedAt: str
    message: str
    reason: str
    signal: int
    startedAt: str


class ContainerStateWaiting(TypedDict, total=False):
    message: str
    reason: str


class ContainerState(TypedDict, total=False):
    running: ContainerStateRunning
    terminated: ContainerStateTerminated
    waiting: ContainerStateWaiting


class LinuxContainerUser(TypedDict, total=False):
    gid: Required[int]
    supplementalGroups: list[int]
    uid: Required[int]


class ContainerUser(TypedDict, total=False):
    linux: LinuxContainerUser


class ResourceHealth(TypedDict, total=False):
    health: str
    message: str
    resourceID: Required[str]


class ResourceStatus(TypedDict, total=False):
    name: Required[str]
    resources: list[ResourceHealth]


class ImageVolumeStatus(TypedDict, total=False):
    imageRef: Required[str]


class VolumeStatus(TypedDict, total=False):
    image: ImageVolumeStatus


class VolumeMountStatus(TypedDict, total=False):
    mountPath: Required[str]
    name: Required[str]
    readOnly: bool
    recursiveReadOnly: str
    volumeStatus: VolumeStatus


class ContainerStatus(TypedDict, total=False):
    allocatedResources: dict[str, meta_v1.Quantity]
    allocatedResourcesStatus: list[ResourceStatus]
    containerID: str
    image: Required[str]
    imageID: Required[str]
    lastState: ContainerState
    name: Required[str]
    ready: Required[bool]
    resources: ResourceRequirements
    restartCount: Required[int]
    started: bool
    state: ContainerState
    stopSignal: Literal[
        "SIGABRT",
        "SIGALRM",
        "SIGBUS",
        "SIGCHLD",
        "SIGCLD",
        "SIGCONT",
        "SIGFPE",
        "SIGHUP",
        "SIGILL",
        "SIGINT",
        "SIGIO",
        "SIGIOT",
        "SIGKILL",
        "SIGPIPE",
        "SIGPOLL",
        "SIGPROF",
        "SIGPWR",
        "SIGQUIT",
        "SIGRTMAX",
        "SIGRTMAX-1",
        "SIGRTMAX-10",
        "SIGRTMAX-11",
        "SIGRTMAX-12",
        "SIGRTMAX-13",
        "SIGRTMAX-14",
        "SIGRTMAX-2",
        "SIGRTMAX-3",
        "SIGRTMAX-4",
        "SIGRTMAX-5",
        "SIGRTMAX-6",
        "SIGRTMAX-7",
        "SIGRTMAX-8",
        "SIGRTMAX-9",
        "SIGRTMIN",
        "SIGRTMIN+1",
        "SIGRTMIN+10",
        "SIGRTMIN+11",
        "SIGRTMIN+12",
        "SIGRTMIN+13",
        "SIGRTMIN+14",
        "SIGRTMIN+15",
        "SIGRTMIN+2",
        "SIGRTMIN+3",
        "SIGRTMIN+4",
        "SIGRTMIN+5",
        "SIGRTMIN+6",
        "SIGRTMIN+7",
        "SIGRTMIN+8",
        "SIGRTMIN+9",
        "SIGSEGV",
        "SIGSTKFLT",
        "SIGSTOP",
        "SIGSYS",
        "SIGTERM",
        "SIGTRAP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGUSR1",
        "SIGUSR2",
        "SIGVTALRM",
        "SIGWINCH",
        "SIGXCPU",
        "SIGXFSZ",
    ]
    user: ContainerUser
    volumeMounts: list[VolumeMountStatus]


class DaemonEndpoint(TypedDict, total=False):
    Port: Required[int]


class DownwardAPIVolumeFile(TypedDict, total=False):
    fieldRef: ObjectFieldSelector
    mode: int
    path: Required[str]
    resourceFieldRef: ResourceFieldSelector


class DownwardAPIProjection(TypedDict, total=False):
    items: list[DownwardAPIVolumeFile]


class DownwardAPIVolumeSource(TypedDict, total=False):
    defaultMode: int
    items: list[DownwardAPIVolumeFile]


class EmptyDirVolumeSource(TypedDict, total=False):
    medium: str
    sizeLimit: meta_v1.Quantity


class EndpointAddress(TypedDict, total=False):
    hostname: str
    ip: Required[str]
    nodeName: str
    targetRef: ObjectReference


class EndpointPort(TypedDict, total=False):
    appProtocol: str
    name: str
    port: Required[int]
    protocol: Literal["SCTP", "TCP", "UDP"]


class EndpointSubset(TypedDict, total=False):
    addresses: list[EndpointAddress]
    notReadyAddresses: list[EndpointAddress]
    ports: list[EndpointPort]


class Endpoints(TypedDict, total=False):
    apiVersion: Literal["v1"]
    kind: Literal["Endpoints"]
    metadata: meta_v1.ObjectMeta
    subsets: list[EndpointSubset]


class EphemeralContainer(TypedDict, total=False):
    args: list[str]
    command: list[str]
    env: list[EnvVar]
    envFrom: list[EnvFromSource]
    image: str
    imagePullPolicy: Literal["Always", "IfNotPresent", "Never"]
    lifecycle: Lifecycle
    livenessProbe: Probe
    name: Required[str]
    ports: list[ContainerPort]
    readinessProbe: Probe
    resizePolicy: list[ContainerResizePolicy]
    resources: ResourceRequirements
    restartPolicy: str
    restartPolicyRules: list[ContainerRestartRule]
    securityContext: SecurityContext
    startupProbe: Probe
    stdin: bool
    stdinOnce: bool
    targetContainerName: str
    terminationMessagePath: str
    terminationMessagePolicy: Literal["FallbackToLogsOnError", "File"]
    tty: bool
    volumeDevices: list[VolumeDevice]
    volumeMounts: list[VolumeMount]
    workingDir: str


class TypedLocalObjectReference(TypedDict, total=False):
    apiGroup: str
    kind: Required[str]
    name: Required[str]


class TypedObjectReference(TypedDict, total=False):
    apiGroup: str
    kind: Required[str]
    name: Required[str]
    namespace: str


class VolumeResourceRequirements(TypedDict, total=False):
    limits: dict[str, meta_v1.Quantity]
    requests: dict[str, meta_v1.Quantity]


class PersistentVolumeClaimSpec(TypedDict, total=False):
    accessModes: list[Literal["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]]
    dataSource: TypedLocalObjectReference
    dataSourceRef: TypedObjectReference
    resources: VolumeResourceRequirements
    selector: meta_v1.LabelSelector
    storageClassName: str
    volumeAttributesClassName: str
    volumeMode: Literal["Block", "Filesystem"]
    volumeName: str


class PersistentVolumeClaimTemplate(TypedDict, total=False):
    metadata: meta_v1.ObjectMeta
    spec: Required[PersistentVolumeClaimSpec]


class EphemeralVolumeSource(TypedDict, total=False):
    volumeClaimTemplate: PersistentVolumeClaimTemplate


class EventSeries(TypedDict, total=False):
    count: int
    lastObservedTime: str


class EventSource(TypedDict, total=False):
    component: str
    host: str


class Event(TypedDict, total=False):
    apiVersion: Literal["v1"]
    kind: Literal["Event"]
    metadata: Required[meta_v1.ObjectMeta]
    action: str
    count: int
    eventTime: str
    firstTimestamp: str
    involvedObject: Required[ObjectReference]
    lastTimestamp: str
    message: str
    reason: str
    related: ObjectReference
    reportingComponent: str
    reportingInstance: str
    series: EventSeries
    source: EventSource
    type: str


class FCVolumeSource(TypedDict, total=False):
    fsType: str
    lun: int
    readOnly: bool
    targetWWNs: list[str]
    wwids: list[str]


class FlexPersistentVolumeSource(TypedDict, total=False):
    driver: Required[str]
    fsType: str
    options: dict[str, str]
    readOnly: bool
    secretRef: SecretReference


class FlexVolumeSource(TypedDict, total=False):
    driver: Required[str]
    fsType: str
    options: dict[str, str]
    readOnly: bool
    secretRef: LocalObjectReference


class FlockerVolumeSource(TypedDict, total=False):
    datasetName: str
    datasetUUID: str


class GCEPersistentDiskVolumeSource(TypedDict, total=False):
    fsType: str
    partition: int
    pdName: Required[str]
    readOnly: bool


class GitRepoVolumeSource(TypedDict, total=False):
    directory: str
    repository: Required[str]
    revision: str


class GlusterfsPersistentVolumeSource(TypedDict, total=False):
    endpoints: Required[str]
    endpointsNamespace: str
    path: Required[str]
    readOnly: bool


class GlusterfsVolumeSource(TypedDict, total=False):
    endpoints: Required[str]
    path: Required[str]
    readOnly: bool


class HostAlias(TypedDict, total=False):
    hostnames: list[str]
    ip: Required[str]


class HostIP(TypedDict, total=False):
    ip: Required[str]


class HostPathVolumeSource(TypedDict, total=False):
    path: Required[str]
    type: Literal["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"]


class ISCSIPersistentVolumeSource(TypedDict, total=False):
    chapAuthDiscovery: bool
    chapAuthSession: bool
    fsType: str
    initiatorName: str
    iqn: Required[str]
    iscsiInterface: str
    lun: Required[int]
    portals: list[str]
    readOnly: bool
    secretRef: SecretReference
    targetPortal: Required[str]


class ISCSIVolumeSource(TypedDict, total=False):
    chapAuthDiscovery: bool
    chapAuthSession: bool
    fsType: str
    initiatorName: str
    iqn: Required[str]
    iscsiInterface: str
    lun: Required[int]
    portals: list[str]
    readOnly: bool
    secretRef: LocalObjectReference
    targetPortal: Required[str]


class ImageVolumeSource(TypedDict, total=False):
    pullPolicy: Literal["Always", "IfNotPresent", "Never"]
    reference: str


class LimitRangeItem(TypedDict, total=False):
    default: dict[str, meta_v1.Quantity]
    defaultRequest: dict[str, meta_v1.Quantity]
    max: dict[str, meta_v1.Quantity]
    maxLimitRequestRatio: dict[str, meta_v1.Quantity]
    min: dict[str, meta_v1.Quantity]
    type: Required[str]


class LimitRangeSpec(TypedDict, total=False):
    limits: Required[list[LimitRangeItem]]


class LimitRange(TypedDict, total=False):
    apiVersion: Literal["v1"]
    kind: Literal["LimitRange"]
    metadata: meta_v1.ObjectMeta
    spec: LimitRangeSpec


class PortStatus(TypedDict, total=False):
    error: str
    port: Required[int]
    protocol: Required[Literal["SCTP", "TCP", "UDP"]]


class LoadBalancerIngress(TypedDict, total=False):
    hostname: str
    ip: str
    ipMode: str
    ports: list[PortStatus]


class LoadBalancerStatus(TypedDict, total=False):
    ingress: list[LoadBalancerIngress]


class LocalVolumeSource(TypedDict, total=False):
    fsType: str
    path: Required[str]


class ModifyVolumeStatus(TypedDict, total=False):
    status: Required[Literal["InProgress", "Infeasible", "Pending"]]
    targetVolumeAttributesClassName: str


class NFSVolumeSource(TypedDict, total=False):
    path: Required[str]
    readOnly: bool
    server: Required[str]


class NamespaceSpec(TypedDict, total=False):
    finalizers: list[str]


class NamespaceCondition(TypedDict, total=False):
    lastTransitionTime: str
    message: str
    reason: str
    status: Required[str]
    type: Required[str]


class NamespaceStatus(TypedDict, total=False):
    conditions: list[NamespaceCondition]
    phase: Literal["Active", "Terminating"]


class Namespace(TypedDict, total=False):
    apiVersion: Literal["v1"]
    kind: Literal["Namespace"]
    metadata: meta_v1.ObjectMeta
    spec: NamespaceSpec
    status: NamespaceStatus


class NodeConfigSource(TypedDict, total=False):
    configMap: ConfigMapNodeConfigSource


class Taint(TypedDict, total=False):
    effect: Required[Literal["NoExecute", "NoSchedule", "PreferNoSchedule"]]
    key: Required[str]
    timeAdded: str
    value: str


class NodeSpec(TypedDict, total=False):
    configSource: NodeConfigSource
    externalID: str
    podCIDR: str
    podCIDRs: list[str]
    providerID: str
    taints: list[Taint]
    unschedulable: bool


class NodeAddress(TypedDict, total=False):
    address: Required[str]
    type: Required[str]


class NodeCondition(TypedDict, total=False):
    lastHeartbeatTime: str
    lastTransitionTime: str
    message: str
    reason: str
    status: Required[str]
    type: Required[str]


class NodeConfigStatus(TypedDict, total=False):
    active: NodeConfigSource
    assigned: NodeConfigSource
    error: str
    lastKnownGood: NodeConfigSource


class NodeDaemonEndpoints(TypedDict, total=False):
    kubeletEndpoint: DaemonEndpoint


class NodeFeatures(TypedDict, total=False):
    supplementalGroupsPolicy: bool


class NodeRuntimeHandlerFeatures(TypedDict, total=False):
    recursiveReadOnlyMounts: bool
    userNamespaces: bool


class NodeRuntimeHandler(TypedDict, total=False):
    features: NodeRuntimeHandlerFeatures
    name: str


class NodeSwapStatus(TypedDict, total=False):
    capacity: int


class NodeSystemInfo(TypedDict, total=False):
    architecture: Required[str]
    bootID: Required[str]
    containerRuntimeVersion: Required[str]
    kernelVersion: Required[str]
    kubeProxyVersion: Required[str]
    kubeletVersion: Required[str]
    machineID: Required[str]
    operatingSystem: Required[str]
    osImage: Required[str]
    swap: NodeSwapStatus
    systemUUID: Required[str]


class NodeStatus(TypedDict, total=False):
    addresses: list[NodeAddress]
    allocatable: dict[str, meta_v1.Quantity]
    capacity: dict[str, meta_v1.Quantity]
    conditions: list[NodeCondition]
    config: NodeConfigStatus
    daemonEndpoints: NodeDaemonEndpoints
    declaredFeatures: list[str]
    features: NodeFeatures
    images: list[ContainerImage]
    nodeInfo: NodeSystemInfo
    phase: Literal["Pending", "Running", "Terminated"]
    runtimeHandlers: list[NodeRuntimeHandler]
    volumesAttached: list[AttachedVolume]
    volumesInUse: list[str]


class Node(TypedDict, total=False):
    apiVersion: Literal["v1"]
    kind: Literal["Node"]
    metadata: meta_v1.ObjectMeta
    spec: NodeSpec
    status: NodeStatus


class NodeAllocatableResourceClaimStatus(TypedDict, total=False):
    containers: list[str]
    resourceClaimName: Required[str]
    resources: Required[dict[str, meta_v1.Quantity]]


class PhotonPersistentDiskVolumeSource(TypedDict, total=False):
    fsType: str
    pdID: Required[str]


class PortworxVolumeSource(TypedDict, total=False):
    fsType: str
    readOnly: bool
    volumeID: Required[str]


class QuobyteVolumeSource(TypedDict, total=False):
    group: str
    readOnly: bool
    registry: Required[str]
    tenant: str
    user: str
    volume: Required[str]


class RBDPersistentVolumeSource(TypedDict, total=False):
    fsType: str
    image: Required[str]
    keyring: str
    monitors: Required[list[str]]
    pool: str
    readOnly: bool
    secretRef: SecretReference
    user: str


class ScaleIOPersistentVolumeSource(TypedDict, total=False):
    fsType: str
    gateway: Required[str]
    protectionDomain: str
    readOnly: bool
    secretRef: Required[SecretReference]
    sslEnabled: bool
    storageMode: str
    storagePool: str
    system: Required[str]
    volumeName: str


class StorageOSPersistentVolumeSource(TypedDict, total=False):
    fsType: str
    readOnly: bool
    secretRef: ObjectReference
    volumeName: str
    volumeNamespace: str


class VolumeNodeAffinity(TypedDict, total=False):
    required: NodeSelector


class VsphereVirtualDiskVolumeSource(TypedDict, total=False):
    fsType: str
    storagePolicyID: str
    storagePolicyName: str
    volumePath: Required[str]


class PersistentVolumeSpec(TypedDict, total=False):
    accessModes: list[Literal["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]]
    awsElasticBlockStore: AWSElasticBlockStoreVolumeSource
    azureDisk: AzureDiskVolumeSource
    azureFile: AzureFilePersistentVolumeSource
    capacity: dict[str, meta_v1.Quantity]
    cephfs: CephFSPersistentVolumeSource
    cinder: CinderPersistentVolumeSource
    claimRef: ObjectReference
    csi: CSIPersistentVolumeSource
    fc: FCVolumeSource
    flexVolume: FlexPersistentVolumeSource
    flocker: FlockerVolumeSource
    gcePersistentDisk: GCEPersistentDiskVolumeSource
    glusterfs: GlusterfsPersistentVolumeSource
    hostPath: HostPathVolumeSource
    iscsi: ISCSIPersistentVolumeSource
    local: LocalVolumeSource
    mountOptions: list[str]
    nfs: NFSVolumeSource
    nodeAffinity: VolumeNodeAffinity
    persistentVolumeReclaimPolicy: Literal["Delete", "Recycle", "Retain"]
    photonPersistentDisk: PhotonPersistentDiskVolumeSource
    portworxVolume: PortworxVolumeSource
    quobyte: QuobyteVolumeSource
    rbd: RBDPersistentVolumeSource
    scaleIO: ScaleIOPersistentVolumeSource
    storageClassName: str
    storageos: StorageOSPersistentVolumeSource
    volumeAttributesClassName: str
    volumeMode: Literal["Block", "Filesystem"]
    vsphereVolume: VsphereVirtualDiskVolumeSource


class PersistentVolumeStatus(TypedDict, total=False):
    lastPhaseTransitionTime: str
    message: str
    phase: Literal["Available", "Bound", "Failed", "Pending", "Released"]
    reason: str


class PersistentVolume(TypedDict, total=False):
    apiVersion: Literal["v1"]
    kind: Literal["PersistentVolume"]
    metadata: meta_v1.ObjectMeta
    spec: PersistentVolumeSpec
    status: PersistentVolumeStatus


class PersistentVolumeClaimCondition(TypedDict, total=False):
    lastProbeTime: str
    lastTransitionTime: str
    message: str
    reason: str
    status: Required[str]
    type: Required[str]


class PersistentVolumeClaimStatus(TypedDict, total=False):
    accessModes: list[Literal["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]]
    allocatedResourceStatuses: dict[
        str,
        Literal[
            "ControllerResizeInProgress",
            "ControllerResizeInfeasible",
            "NodeResizeInProgress",
            "NodeResizeInfeasible",
            "NodeResizePending",
        ],
    ]
    allocatedResources: dict[str, meta_v1.Quantity]
    capacity: dict[str, meta_v1.Quantity]
    conditions: list[PersistentVolumeClaimCondition]
    currentVolumeAttributesClassName: str
    modifyVolumeStatus: ModifyVolumeStatus
    phase: Literal["Bound", "Lost", "Pending"]


class PersistentVolumeClaim(TypedDict, total=False):
    apiVersion: Literal["v1"]
    kind: Literal["PersistentVolumeClaim"]
    metadata: meta_v1.ObjectMeta
    spec: PersistentVolumeClaimSpec
    status: PersistentVolumeClaimStatus


class PersistentVolumeClaimVolumeSource(TypedDict, total=False):
    claimName: Required[str]
    readOnly: bool


class PodDNSConfigOption(TypedDict, total=False):
    name: str
    value: str


class PodDNSConfig(TypedDict, total=False):
    nameservers: list[str]
    options: list[PodDNSConfigOption]
    searches: list[str]


class PodOS(TypedDict, total=False):
    name: Required[str]


class PodReadinessGate(TypedDict, total=False):
    conditionType: Required[str]


class PodResourceClaim(TypedDict, total=False):
    name: Required[str]
    resourceClaimName: str
    resourceClaimTemplateName: str


class PodSchedulingGate(TypedDict, total=False):
    name: Required[str]


class PodSchedulingGroup(TypedDict, total=False):
    podGroupName: str


class Sysctl(TypedDict, total=False):
    name: Required[str]
    value: Required[str]


class PodSecurityContext(TypedDict, total=False):
    appArmorProfile: AppArmorProfile
    fsGroup: int
    fsGroupChangePolicy: Literal["Always", "OnRootMismatch"]
    runAsGroup: int
    runAsNonRoot: bool
    runAsUser: int
    seLinuxChangePolicy: str
    seLinuxOptions: SELinuxOptions
    seccompProfile: SeccompProfile
    supplementalGroups: list[int]
    supplementalGroupsPolicy: Literal["Merge", "Strict"]
    sysctls: list[Sysctl]
    windowsOptions: WindowsSecurityContextOptions


class Toleration(TypedDict, total=False):
    effect: Literal["NoExecute", "NoSchedule", "PreferNoSchedule"]
    key: str
    operator: Literal["Equal", "Exists", "Gt", "Lt"]
    tolerationSeconds: int
    value: str


class TopologySpreadConstraint(TypedDict, total=False):
    labelSelector: meta_v1.LabelSelector
    matchLabelKeys: list[str]
    maxSkew: Required[int]
    minDomains: int
    nodeAffinityPolicy: Literal["Honor", "Ignore"]
    nodeTaintsPolicy: Literal["Honor", "Ignore"]
    topologyKey: Required[str]
    whenUnsatisfiable: Required[Literal["DoNotSchedule", "ScheduleAnyway"]]


class PodCertificateProjection(TypedDict, total=False):
    certificateChainPath: str
    credentialBundlePath: str
    keyPath: str
    keyType: Required[str]
    maxExpirationSeconds: int
    signerName: Required[str]
    userAnnotations: dict[str, str]


class SecretProjection(TypedDict, total=False):
    items: list[KeyToPath]
    name: str
    optional: bool


class ServiceAccountTokenProjection(TypedDict, total=False):
    audience: str
    expirationSeconds: int
    path: Required[str]


class VolumeProjection(TypedDict, total=False):
    clusterTrustBundle: ClusterTrustBundleProjection
    configMap: ConfigMapProjection
    downwardAPI: DownwardAPIProjection
    podCertificate: PodCertificateProjection
    secret: SecretProjection
    serviceAccountToken: ServiceAccountTokenProjection


class ProjectedVolumeSource(TypedDict, total=False):
    defaultMode: int
    sources: list[VolumeProjection]


class RBDVolumeSource(TypedDict, total=False):
    fsType: str
    image: Required[str]
    keyring: str
    monitors: Required[list[str]]
    pool: str
    readOnly: bool
    secretRef: LocalObjectReference
    user: str


class ScaleIOVolumeSource(TypedDict, total=False):
    fsType: str
    gateway: Required[str]
    protectionDomain: str
    readOnly: bool
    secretRef: Required[LocalObjectReference]
    sslEnabled: bool
    storageMode: str
    storagePool: str
    system: Required[str]
    volumeName: str


class SecretVolumeSource(TypedDict, total=False):
    defaultMode: int
    items: list[KeyToPath]
    optional: bool
    secretName: str


class StorageOSVolumeSource(TypedDict, total=False):
    fsType: str
    readOnly: bool
    secretRef: LocalObjectReference
    volumeName: str
    volumeNamespace: str


class Volume(TypedDict, total=False):
    awsElasticBlockStore: AWSElasticBlockStoreVolumeSource
    azureDisk: AzureDiskVolumeSource
    azureFile: AzureFileVolumeSource
    cephfs: CephFSVolumeSource
    cinder: CinderVolumeSource
    configMap: ConfigMapVolumeSource
    csi: CSIVolumeSource
    downwardAPI: DownwardAPIVolumeSource
    emptyDir: EmptyDirVolumeSource
    ephemeral: EphemeralVolumeSource
    fc: FCVolumeSource
    flexVolume: FlexVolumeSource
    flocker: FlockerVolumeSource
    gcePersistentDisk: GCEPersistentDiskVolumeSource
    gitRepo: GitRepoVolumeSource
    glusterfs: GlusterfsVolumeSource
    hostPath: HostPathVolumeSource
    image: ImageVolumeSource
    iscsi: ISCSIVolumeSource
    name: Required[str]
    nfs: NFSVolumeSource
    persistentVolumeClaim: PersistentVolumeClaimVolumeSource
    photonPersistentDisk: PhotonPersistentDiskVolumeSource
    portworxVolume: PortworxVolumeSource
    projected: ProjectedVolumeSource
    quobyte: QuobyteVolumeSource
    rbd: RBDVolumeSource
    scaleIO: ScaleIOVolumeSource
    secret: SecretVolumeSource
    storageos: StorageOSVolumeSource
    vsphereVolume: VsphereVirtualDiskVolumeSource


class PodSpec(TypedDict, total=False):
    activeDeadlineSeconds: int
    affinity: Affinity
    automountServiceAccountToken: bool
    containers: Required[list[Container]]
    dnsConfig: PodDNSConfig
    dnsPolicy: Literal["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]
    enableServiceLinks: bool
    ephemeralContainers: list[EphemeralContainer]
    hostAliases: list[HostAlias]
    hostIPC: bool
    hostNetwork: bool
    hostPID: bool
    hostUsers: bool
    hostname: str
    hostnameOverride: str
    imagePullSecrets: list[LocalObjectReference]
    initContainers: list[Container]
    nodeName: str
    nodeSelector: dict[str, str]
    os: PodOS
    overhead: dict[str, meta_v1.Quantity]
    preemptionPolicy: Literal["Never", "PreemptLowerPriority"]
    priority: int
    priorityClassName: str
    readinessGates: list[PodReadinessGate]
    resourceClaims: list[PodResourceClaim]
    resources: ResourceRequirements
    restartPolicy: Literal["Always", "Never", "OnFailure"]
    runtimeClassName: str
    schedulerName: str
    schedulingGates: list[PodSchedulingGate]
    schedulingGroup: PodSchedulingGroup
    securityContext: PodSecurityContext
    serviceAccount: str
    serviceAccountName: str
    setHostnameAsFQDN: bool
    shareProcessNamespace: bool
    subdomain: str
    terminationGracePeriodSeconds: int
    tolerations: list[Toleration]
    topologySpreadConstraints: list[TopologySpreadConstraint]
    volumes: list[Volume]


class PodCondition(TypedDict, total=False):
    lastProbeTime: str
    lastTransitionTime: str
    message: str
    observedGeneration: int
    reason: str
    status: Required[str]
    type: Required[str]


class PodExtendedResourceClaimStatus(TypedDict, total=False):
    requestMappings: Required[list[ContainerExtendedResourceRequest]]
    resourceClaimName: Required[str]


class PodIP(TypedDict, total=False):
    ip: Required[str]


class PodResourceClaimStatus(TypedDict, total=False):
    name: Required[str]
    resourceClaimName: str


class PodStatus(TypedDict, total=False):
    allocatedResources: dict[str, meta_v1.Quantity]
    conditions: list[PodCondition]
    containerStatuses: list[ContainerStatus]
    ephemeralContainerStatuses: list[ContainerStatus]
    extendedResourceClaimStatus: PodExtendedResourceClaimStatus
    hostIP: str
    hostIPs: list[HostIP]
    initContainerStatuses: list[ContainerStatus]
    message: str
    nodeAllocatableResourceClaimStatuses: list[NodeAllocatableResourceClaimStatus]
    nominatedNodeName: str
    observedGeneration: int
    phase: Literal["Failed", "Pending", "Running", "Succeeded", "Unknown"]
    podIP: str
    podIPs: list[PodIP]
    qosClass: Literal["BestEffort", "Burstable", "Guaranteed"]
    reason: str
    resize: str
    resourceClaimStatuses: list[PodResourceClaimStatus]
    resources: ResourceRequirements
    startTime: str


class Pod(TypedDict, total=False):
    apiVersion: Literal["v1"]
    kind: Literal["Pod"]
    metadata: meta_v1.ObjectMeta
    spec: PodSpec
    status: PodStatus


class PodTemplateSpec(TypedDict, total=False):
    metadata: meta_v1.ObjectMeta
    spec: PodSpec


class PodTemplate(TypedDict, total=False):
    apiVersion: Literal["v1"]
    kind: Literal["PodTemplate"]
    metadata: meta_v1.ObjectMeta
    template: PodTemplateSpec


class ReplicationControllerSpec(TypedDict, total=False):
    minReadySeconds: int
    replicas: int
    selector: dict[str, str]
    template: PodTemplateSpec


class ReplicationControllerCondition(TypedDict, total=False):
    lastTransitionTime: str
    message: str
    reason: str
    status: Required[str]
    type: Required[str]


class ReplicationControllerStatus(TypedDict, total=False):
    availableReplicas: int
    conditions: list[ReplicationControllerCondition]
    fullyLabeledReplicas: int
    observedGeneration: int
    readyReplicas: int
    replicas: Required[int]


class ReplicationController(TypedDict, total=False):
    apiVersion: Literal["v1"]
    kind: Literal["ReplicationController"]
    metadata: meta_v1.ObjectMeta
    spec: ReplicationControllerSpec
    status: ReplicationControllerStatus


class ScopedResourceSelectorRequirement(TypedDict, total=False):
    operator: Required[Literal["DoesNotExist", "Exists", "In", "NotIn"]]
    scopeName: Required[
        Literal[
            "BestEffort",
            "CrossNamespacePodAffinity",
            "NotBestEffort",
            "NotTerminating",
            "PriorityClass",
            "Terminating",
            "VolumeAttributesClass",
        ]
    ]
    values: list[str]


class ScopeSelector(TypedDict, total=False):
    matchExpressions: list[ScopedResourceSelectorRequirement]


class ResourceQuotaSpec(TypedDict, total=False):
    hard: dict[str, meta_v1.Quantity]
    scopeSelector: ScopeSelector
    scopes: list[
        Literal[
            "BestEffort",
            "CrossNamespacePodAffinity",
            "NotBestEffort",
            "NotTerminating",
            "PriorityClass",
            "Terminating",
            "VolumeAttributesClass",
        ]
    ]


class ResourceQuotaStatus(TypedDict, total=False):
    hard: dict[str, meta_v1.Quantity]
    used: dict[str, meta_v1.Quantity]


class ResourceQuota(TypedDict, total=False):
    apiVersion: Literal["v1"]
    kind: Literal["ResourceQuota"]
    metadata: meta_v1.ObjectMeta
    spec: ResourceQuotaSpec
    status: ResourceQuotaStatus


class Secret(TypedDict, total=False):
    apiVersion: Literal["v1"]
    kind: Literal["Secret"]
    metadata: meta_v1.ObjectMeta
    data: dict[str, str]
    immutable: bool
    stringData: dict[str, str]
    type: str


class ServicePort(TypedDict, total=False):
    appProtocol: str
    name: str
    nodePort: int
    port: Required[int]
    protocol: Literal["SCTP", "TCP", "UDP"]
    targetPort: int | str


class SessionAffinityConfig(TypedDict, total=False):
    clientIP: ClientIPConfig


class ServiceSpec(TypedDict, total=False):
    allocateLoadBalancerNodePorts: bool
    clusterIP: str
    clusterIPs: list[str]
    externalIPs: list[str]
    externalName: str
    externalTrafficPolicy: Literal["Cluster", "Local"]
    healthCheckNodePort: int
    internalTrafficPolicy: Literal["Cluster", "Local"]
    ipFamilies: list[Literal["", "IPv4", "IPv6"]]
    ipFamilyPolicy: Literal["PreferDualStack", "RequireDualStack", "SingleStack"]
    loadBalancerClass: str
    loadBalancerIP: str
    loadBalancerSourceRanges: list[str]
    ports: list[ServicePort]
    publishNotReadyAddresses: bool
    selector: dict[str, str]
    sessionAffinity: Literal["ClientIP", "None"]
    sessionAffinityConfig: SessionAffinityConfig
    trafficDistribution: str
    type: Literal["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]


class ServiceStatus(TypedDict, total=False):
    conditions: list[meta_v1.Condition]
    loadBalancer: LoadBalancerStatus


class Service(TypedDict, total=False):
    apiVersion: Literal["v1"]
    kind: Literal["Service"]
    metadata: meta_v1.ObjectMeta
    spec: ServiceSpec
    status: ServiceStatus


class ServiceAccount(TypedDict, total=False):
    apiVersion: Literal["v1"]
    kind: Literal["ServiceAccount"]
    metadata: meta_v1.ObjectMeta
    automountServiceAccountToken: bool
    imagePullSecrets: list[LocalObjectReference]
    secrets: list[ObjectReference]


class TopologySelectorLabelRequirement(TypedDict, total=False):
    key: Required[str]
    values: Required[list[str]]


class TopologySelectorTerm(TypedDict, total=False):
    matchLabelExpressions: list[TopologySelectorLabelRequirement]
