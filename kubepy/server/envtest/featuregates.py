"""The feature gates of kube-apiserver v1.36: which there are, and which of them cannot be turned.

They are read, and change nothing: what v1.36 does by default is what is served. Upstream:
``pkg/features``, ``component-base/featuregate``.
"""

from __future__ import annotations

from kubepy.api.values.goformat import parse_bool

COMPONENT = "kube:"  # what may stand before a name
ALL_ALPHA, ALL_BETA = "AllAlpha", "AllBeta"
_LOCKED_ON = """
APIServerTracing AggregatedDiscoveryRemoveBetaType AnonymousAuthConfigurableEndpoints
AnyVolumeDataSource AuthorizeNodeWithSelectors AuthorizeWithSelectors BtreeWatchCache
CPUManagerPolicyOptions CRDValidationRatcheting CSIServiceAccountTokenSecrets
ConsistentListFromCache CustomResourceFieldSelectors DRAAdminAccess DeclarativeValidation
DisableAllocatorDualWrite DisableNodeKubeProxyVersion ExecProbeTimeout
ExternalServiceAccountTokenSigner ImageMaximumGCAge ImageVolume InOrderInformers
InPlacePodVerticalScaling JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy
JobSuccessPolicy KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz KubeletPSI
KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletTracing LogarithmicScaleDown
MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator MutableCSINodeAllocatableCount
NFTablesProxyMode NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap
OrderedNamespaceDeletion PodLifecycleSleepAction PodLifecycleSleepActionAllowZero
PodObservedGenerationTracking PodSchedulingReadiness PreferSameTrafficDistribution ProcMountType
RecoverVolumeExpansionFailure RecursiveReadOnlyMounts RelaxedDNSSearchValidation
RelaxedEnvironmentVariableValidation ResilientWatchCacheInitialization RetryGenerateName
SELinuxChangePolicy SELinuxMountReadWriteOncePod SchedulerQueueingHints
SeparateTaintEvictionController ServiceAccountTokenJTI ServiceAccountTokenNodeBinding
ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo SidecarContainers
StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf
StructuredAuthenticationConfiguration SupplementalGroupsPolicy TopologyManagerPolicyOptions
UserNamespacesSupport VolumeAttributesClass WinDSR WinOverlay
"""
_LOCKED_OFF = """
AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver SeparateCacheWatchRPC
"""
_FREE = """
APIResponseCompression APIServerIdentity APIServingWithRoutine AllowDNSOnlyNodeCSR
AllowInsecureKubeletCertificateSigningRequests AllowParsingUserUIDFromCertAuth
AllowServiceExternalIPs AllowUnsafeMalformedObjectDeletion AtomicFIFO
AuthorizePodWebsocketUpgradeCreatePermission CBORServingAndStorage CPUManagerPolicyAlphaOptions
CPUManagerPolicyBetaOptions CRDObservedGenerationTracking CRIListStreaming CSIVolumeHealth
ChangeContainerStatusOnKubeletRestart ClearingNominatedNodeNameAfterBinding
ClientsAllowCARotation ClientsAllowCBOR ClientsAllowTLSCacheGC ClientsPreferCBOR
ClusterTrustBundle ClusterTrustBundleProjection ComponentFlagz ComponentStatusz
ConcurrentWatchObjectDecode ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules
ContainerStopSignals ContextualLogging CoordinatedLeaderElection CrossNamespaceVolumeDataSource
CustomCPUCFSQuotaPeriod DRAConsumableCapacity DRADeviceBindingConditions DRADeviceTaintRules
DRADeviceTaints DRAExtendedResource DRAListTypeAttributes DRANodeAllocatableResources
DRAPartitionableDevices DRAPrioritizedList DRAResourceClaimDeviceStatus
DRAResourceClaimGranularStatusAuthorization DRAResourcePoolStatus DRASchedulerFilterTimeout
DRAWorkloadResourceClaims DeclarativeValidationBeta DeclarativeValidationTakeover
DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency
DisableCPUQuotaWithExclusiveCPUs DynamicResourceAllocation EnvFiles EventedPLEG
ExtendWebSocketsToKubelet GangScheduling GenericWorkload GracefulNodeShutdown
GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance HPAScaleToZero HostnameOverride
ImageVolumeWithDigest InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling
InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory
InPlacePodVerticalScalingInitContainers InformerResourceVersion KMSv1 KubeletCrashLoopBackOffMax
KubeletEnsureSecretPulledImages KubeletInUserNamespace KubeletPodResourcesListUseActivePods
KubeletRegistrationGetOnExistsOnly KubeletSeparateDiskGC
KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot
LocalStorageCapacityIsolationFSQuotaMonitoring LoggingAlphaOptions LoggingBetaOptions
LoggingStableOptions ManifestBasedAdmissionControlConfig MatchLabelKeysInPodTopologySpread
MatchLabelKeysInPodTopologySpreadSelectorMerge MaxUnavailableStatefulSet MemoryQoS
MutablePVNodeAffinity MutablePodResourcesForSuspendedJobs
MutableSchedulingDirectivesForSuspendedJobs MutatingAdmissionPolicy NativeHistograms
NodeDeclaredFeatures NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching
PLEGOnDemandRelist PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI
PodCertificateRequest PodDeletionCost PodLevelResourceManagers PodLevelResources
PodLogsQuerySplitStreams PodReadyToStartContainersCondition PodTopologyLabelsAdmission PodsAPI
PortForwardWebsockets PreventStaticPodAPIReferences QOSReserved
ReduceDefaultCrashLoopBackOffDecay RelaxedServiceNameValidation
ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus
ResourceHealthStatusMessage RestartAllContainersOnContainerExits RotateKubeletServerCertificate
RuntimeClassInImageCriApi SELinuxMount SchedulerAsyncAPICalls SchedulerAsyncPreemption
SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction ServiceCIDRStatusFieldWiping
ShardedListAndWatch SizeBasedListCostEstimate StaleControllerConsistencyDaemonSet
StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison
StorageCapacityScoring StorageNamespaceIndex StorageVersionAPI StorageVersionHash
StorageVersionMigrator StrictIPCIDRValidation
StructuredAuthenticationConfigurationEgressSelector
StructuredAuthenticationConfigurationJWKSMetrics TaintTolerationComparisonOperators
TokenRequestServiceAccountUIDValidation TopologyAwareWorkloadScheduling
TopologyManagerPolicyAlphaOptions TopologyManagerPolicyBetaOptions
TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO UserNamespacesHostNetworkSupport
VolumeLimitScaling WatchCacheInitializationPostStartHook WatchList WatchListClient
WindowsCPUAndMemoryAffinity WindowsGracefulNodeShutdown WindowsHostNetwork
WorkloadAwarePreemption WorkloadWithJob
"""
LOCKED_ON = frozenset(_LOCKED_ON.split())
LOCKED_OFF = frozenset(_LOCKED_OFF.split())
FREE = frozenset(_FREE.split())
GATES = LOCKED_ON | LOCKED_OFF | FREE | {ALL_ALPHA, ALL_BETA}


class FeatureGateError(ValueError):
    """A setting of feature gates that kube-apiserver refuses, in its words."""


def parse_feature_gates(text: str) -> dict[str, bool]:
    """Read ``Name=true,Other=false``. Raises FeatureGateError."""
    gates: dict[str, bool] = {}
    for setting in text.split(","):
        if not setting.strip():
            continue
        name, equals, value = (part.strip() for part in setting.partition("="))
        if not equals:
            raise FeatureGateError(f"missing bool value for {name}")
        try:
            gates[name.removeprefix(COMPONENT)] = parse_bool(value)
        except ValueError as error:
            raise FeatureGateError(f"invalid value of {name}={value}, err: {error}") from None
    return gates


def check_feature_gates(gates: dict[str, bool]) -> None:
    """Check that gates exist and may be turned so. Raises FeatureGateError."""
    for name, enabled in gates.items():
        if name not in GATES:
            raise FeatureGateError(f"unrecognized feature gate: {name}")
        locked = name in LOCKED_ON or name in LOCKED_OFF
        default = name in LOCKED_ON
        if locked and enabled != default:
            raise FeatureGateError(
                f"cannot set feature gate {name} to {str(enabled).lower()}, feature is locked to "
                f"{str(default).lower()}"
            )
