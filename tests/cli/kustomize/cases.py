"""Kustomizations to build: the files of each, by path; the folder ``over`` is built."""

from __future__ import annotations

Files = dict[str, str]

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {x: y}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: robot
      containers:
      - name: web
        image: nginx:1.25
        ports: [{containerPort: 80}]
        env:
        - {name: A, value: "1"}
        - name: B
          valueFrom: {configMapKeyRef: {name: conf, key: k}}
        envFrom: [{secretRef: {name: sec}}]
      initContainers: [{name: init, image: "registry.io:5000/a/b@sha256:abc"}]
      volumes:
      - name: v
        configMap: {name: conf}
      - name: p
        projected: {sources: [{secret: {name: sec}}, {configMap: {name: conf}}]}
      - name: c
        persistentVolumeClaim: {claimName: disk}
"""
OTHERS = """\
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot}
---
apiVersion: v1
kind: Namespace
metadata: {name: place}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: rb}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
- {kind: ServiceAccount, name: robot, namespace: default}
- {kind: ServiceAccount, name: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules:
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [conf]
  verbs: [get]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: fast
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports:
  - port: 80
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
  annotations: {nginx.ingress.kubernetes.io/auth-secret: sec}
spec:
  tls:
  - secretName: sec
  rules:
  - host: a.b
    http:
      paths:
      - path: /
        pathType: Prefix
        backend: {service: {name: web, port: {number: 80}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 3
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: web
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
      - {name: c, image: pg}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {storageClassName: fast}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: tick}
spec:
  schedule: "* * * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - name: c
            image: nginx
            envFrom:
            - configMapRef: {name: conf}
---
apiVersion: sea.example/v1
kind: Boat
metadata: {name: titanic}
spec:
  sails:
  - {name: a, image: x}
  containers:
  - {name: q, image: "nginx:1"}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.sea.example}
spec:
  group: sea.example
  names: {kind: Boat, plural: boats}
  scope: Namespaced
  versions: []
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  minAvailable: 1
  selector: {matchLabels: {app: web}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: np}
spec:
  podSelector: {}
  ingress:
  - from:
    - podSelector: {matchLabels: {a: b}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: x
"""
BASE: Files = {
    "base/kustomization.yaml": """\
resources: [d.yaml, o.yaml]
configMapGenerator:
- name: conf
  literals: [k=v]
secretGenerator:
- name: sec
  literals: [p=q]
""",
    "base/d.yaml": DEPLOYMENT,
    "base/o.yaml": OTHERS,
}


def over(settings: str, **files: str) -> Files:
    """Return an overlay of the base; ``p__yaml`` is its file ``p.yaml``."""
    own = {f"over/{name.replace('__', '.')}": content for name, content in files.items()}
    return {**BASE, "over/kustomization.yaml": f"resources: [../base]\n{settings}", **own}


CASES: dict[str, Files] = {
    "nothing changed": over(""),
    "prefix and suffix": over("namePrefix: a-\nnameSuffix: -z\n"),
    "namespace": over("namespace: prod\nnamePrefix: a-\n"),
    "labels": over("""\
labels:
- pairs: {l: "1"}
- pairs: {s: "2"}
  includeSelectors: true
- pairs: {t: "3"}
  includeTemplates: true
"""),
    "labels of own fields": over("""\
labels:
- pairs: {t: "3"}
  includeTemplates: true
  fields:
  - path: spec/foo/labels
    kind: Boat
    create: true
"""),
    "common labels and annotations": over("commonLabels: {c: d}\ncommonAnnotations: {e: f}\n"),
    "images": over("""\
images:
- name: nginx
  newTag: "9"
- name: pg
  newName: postgres
  digest: sha256:00
- name: registry.io:5000/a/b
  newName: x/y
"""),
    "suffixes of tags": over("images:\n- name: nginx\n  tagSuffix: -alpine\n"),
    "replicas": over(
        "replicas:\n- {name: web, count: 7}\n- {name: db, count: 2}\nnamePrefix: p-\n"
    ),
    "strategic patch": over("""\
patches:
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web, annotations: {n: w}}
    spec:
      replicas: null
      template:
        spec:
          containers:
          - name: side
            image: s
          - name: web
            env:
            - {name: A, value: "2"}
            - {name: Z, value: z}
"""),
    "strategic patch of a target": over("""\
patches:
- target: {kind: Deployment|StatefulSet}
  patch: |
    apiVersion: x
    kind: y
    metadata: {name: whatever}
    spec: {minReadySeconds: 4}
"""),
    "deleting": over("""\
patches:
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    $patch: delete
"""),
    "deleting from a list": over("""\
patches:
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec: {template: {spec: {volumes: [{name: v, $patch: delete}]}}}
"""),
    "JSON patch": over("""\
patches:
- target: {kind: Deployment, name: web}
  patch: |-
    - op: replace
      path: /spec/replicas
      value: 1
    - op: add
      path: /metadata/annotations
      value: {a: b}
    - {op: remove, path: /spec/template/spec/volumes/0}
"""),
    "JSON patch in a file": over(
        "patches:\n- path: p.yaml\n  target: {labelSelector: x=y}\n",
        p__yaml='[{"op":"add","path":"/metadata/labels/new","value":"1"}]',
    ),
    "patch of a custom resource": over("""\
patches:
- patch: |
    apiVersion: sea.example/v1
    kind: Boat
    metadata: {name: titanic}
    spec: {sails: [{name: b}], crew: 3}
"""),
    "patchesStrategicMerge": over(
        "patchesStrategicMerge: [p.yaml]\n",
        p__yaml="""\
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  ports:
  - {port: 443, name: tls}
  - {port: 80, name: http}
""",
    ),
    "patchesJson6902": over(
        """\
patchesJson6902:
- target: {version: v1, kind: Service, name: web}
  path: p.json
""",
        p__json='[{"op":"test","path":"/spec/ports/0/port","value":80},'
        '{"op":"move","from":"/spec/selector/app","path":"/spec/selector/run"}]',
    ),
    "config map merged": over("""\
configMapGenerator:
- name: conf
  behavior: merge
  literals: [x=y, "q='quoted'"]
"""),
    "config map replaced": over("""\
configMapGenerator:
- name: conf
  behavior: replace
  literals: [x=y]
generatorOptions: {labels: {g: h}, annotations: {i: j}}
"""),
    "generated from files": over(
        """\
configMapGenerator:
- name: f
  files: [a.txt, key=b.txt]
  envs: [e.env]
secretGenerator:
- name: s
  type: kubernetes.io/tls
  files: [tls.crt=a.txt]
  options: {disableNameSuffixHash: true, immutable: true}
""",
        a__txt="hello\nworld\n",
        b__txt="x" * 100,
        e__env="# c\nA=1\n  B=2\nC=\n\nD=a=b\n",
    ),
    "long secret": over(
        "secretGenerator:\n- name: s\n  files: [a.txt]\n", a__txt="hello world " * 20
    ),
    "without hashes": over(
        "configMapGenerator:\n- name: plain\n  literals: [a=b]\n"
        "generatorOptions: {disableNameSuffixHash: true}\n"
    ),
    "component": {
        **over("components: [../comp]\nnamePrefix: z-\n"),
        "comp/kustomization.yaml": """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
replicas:
- {name: web, count: 9}
configMapGenerator:
- name: conf
  behavior: merge
  literals: [c=d]
patches:
- target: {kind: Service}
  patch: '[{"op": "add", "path": "/spec/type", "value": "NodePort"}]'
""",
    },
    "one base twice": {
        **BASE,
        "a/kustomization.yaml": "resources: [../base]\nnamePrefix: a-\nnamespace: a\n",
        "b/kustomization.yaml": """\
resources: [../base]
namePrefix: b-
namespace: b
patches:
- target: {kind: CustomResourceDefinition}
  patch: |
    $patch: delete
    apiVersion: v1
    kind: x
    metadata: {name: x}
""",
        "over/kustomization.yaml": "resources: [../a, ../b]\n",
    },
    "replacements": over("""\
replacements:
- source: {kind: Deployment, name: web, fieldPath: spec.replicas}
  targets:
  - select: {kind: StatefulSet}
    fieldPaths: [spec.replicas]
    options: {create: true}
  - select: {kind: Deployment}
    fieldPaths: ["spec.template.spec.containers.[name=web].env.[name=A].value"]
- source: {kind: Service, name: web}
  targets:
  - select: {kind: Ingress}
    reject:
    - {name: zz}
    fieldPaths: [spec.rules.0.host]
    options: {delimiter: ".", index: 0}
"""),
    "order of files": over("sortOptions: {order: fifo}\n"),
    "order of kinds": over(
        "sortOptions: {order: legacy, legacySortOptions: {orderFirst: [Service], "
        "orderLast: [Namespace]}}\n"
    ),
    "old fields": {
        **BASE,
        "over/kustomization.yaml": "bases: [../base]\nimageTags:\n- name: nginx\n  newTag: '2'\n",
    },
    "renamed by a patch": over("""\
patches:
- options: {allowNameChange: true, allowKindChange: true}
  target: {kind: Service, name: web}
  patch: |
    apiVersion: v1
    kind: Service
    metadata: {name: renamed}
"""),
    "two namespaces one over the other": {
        **BASE,
        "mid/kustomization.yaml": "resources: [../base]\nnamespace: mid\n",
        "over/kustomization.yaml": """\
resources: [../mid]
namespace: top
namePrefix: t-
patches:
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web, namespace: mid}
    spec: {paused: true}
""",
    },
    "local objects": {
        **BASE,
        "over/kustomization.yaml": "resources: [../base, l.yaml]\n",
        "over/l.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: l\n"
        "  annotations: {config.kubernetes.io/local-config: 'true'}\n",
    },
    "a List": {
        "over/kustomization.yaml": "resources: [l.yaml]\nnamePrefix: q-\n",
        "over/l.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, "
        "metadata: {name: a}}\n"
        "- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n",
    },
    "scalars": {
        "over/kustomization.yaml": "resources: [l.yaml]\n",
        "over/l.yaml": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data:
  a: "yes"
  b: "1"
  c: |
    multi
    line
  d: "tab\\there"
  e: ""
  f: "null"
  g: "# x"
  h: "LONG"
  i: "a: b"
  j: "0o7"
  k: 1.5
  l: yes
  m: 0x10
  n: 'it''s'
""".replace("LONG", "long " * 40),
    },
}

# What a scaffold of kubebuilder has in config/crd/kustomizeconfig.yaml, and more.
CONFIGURATION = """\
nameReference:
- kind: Service
  version: v1
  fieldSpecs:
  - kind: CustomResourceDefinition
    group: apiextensions.k8s.io
    path: spec/conversion/webhook/clientConfig/service/name
- kind: Issuer
  group: cert-manager.io
  fieldSpecs:
  - {kind: Certificate, group: cert-manager.io, path: spec/issuerRef/name}
namespace:
- kind: CustomResourceDefinition
  group: apiextensions.k8s.io
  path: spec/conversion/webhook/clientConfig/service/namespace
  create: false
- {kind: Certificate, path: spec/secretNamespace, create: true}
varReference:
- {kind: Certificate, group: cert-manager.io, path: spec/commonName}
- {kind: Certificate, group: cert-manager.io, path: spec/dnsNames}
commonLabels:
- {kind: Certificate, path: spec/selector, create: true}
commonAnnotations:
- {kind: Certificate, path: spec/secretTemplate/annotations, create: true}
images:
- {kind: Certificate, path: spec/runner/image}
replicas:
- {kind: Certificate, path: spec/copies, create: true}
namePrefix:
- {kind: Certificate, path: spec/secretName}
"""
CUSTOM = {
    "base/kustomization.yaml": "resources: [c.yaml, s.yaml]\nconfigurations: [k.yaml]\nvars:\n"
    "- {name: SERVICE, objref: {kind: Service, version: v1, name: webhook}}\n",
    "base/k.yaml": CONFIGURATION,
    "base/c.yaml": """\
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: self}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: serving}
spec:
  commonName: $(SERVICE).svc
  dnsNames: [$(SERVICE), "$(SERVICE).x"]
  issuerRef: {kind: Issuer, name: self}
  runner: {image: nginx}
  secretName: key
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: a.b.c}
spec:
  conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: webhook, namespace: system, path: /c}}}}
""",  # noqa: E501
    "base/s.yaml": "{apiVersion: v1, kind: Service, metadata: {name: webhook}, spec: {selector: "
    "{a: b}}}\n",
    "over/kustomization.yaml": "resources: [../base]\nnamePrefix: my-\nnamespace: "
    "place\ncommonLabels: {l: m}\n"
    "commonAnnotations: {note: o}\nimages: [{name: nginx, newTag: '2'}]\n"
    "replicas: [{name: serving, count: 4}]\n",
}
PLUGINS = {
    **BASE,
    "over/kustomization.yaml": """\
resources: [../base]
transformers:
- labels.yaml
- folder
- |-
  apiVersion: builtin
  kind: PrefixSuffixTransformer
  metadata: {name: affixes}
  prefix: p-
  suffix: -s
  fieldSpecs: [{path: metadata/name}]
- |-
  {apiVersion: builtin, kind: AnnotationsTransformer, metadata: {name: notes}, annotations: {truth: yes, number: 1},
   fieldSpecs: [{path: metadata/annotations, create: true}]}
generators: [generators.yaml]
validators: [check.yaml]
""",  # noqa: E501
    "over/labels.yaml": """\
apiVersion: builtin
kind: LabelTransformer
metadata: {name: labels}
labels: {team: x}
fieldSpecs:
- {path: metadata/labels, create: true}
- {path: spec/template/metadata/labels, kind: Deployment, create: true}
---
apiVersion: builtin
kind: ImageTagTransformer
metadata: {name: images}
imageTag: {name: nginx, newTag: "9"}
---
apiVersion: builtin
kind: ReplicaCountTransformer
metadata: {name: replicas}
replica: {name: web, count: 7}
fieldSpecs: [{path: spec/replicas, kind: Deployment, create: true}]
---
apiVersion: builtin
kind: PatchTransformer
metadata: {name: patch}
target: {kind: Deployment}
patch: |-
  - {op: add, path: /spec/paused, value: true}
---
apiVersion: builtin
kind: PatchStrategicMergeTransformer
metadata: {name: merge}
patches: |-
  apiVersion: v1
  kind: Service
  metadata: {name: web}
  spec: {type: NodePort}
---
apiVersion: builtin
kind: PatchJson6902Transformer
metadata: {name: json}
target: {version: v1, kind: Service, name: web}
jsonOp: '[{"op": "add", "path": "/spec/clusterIP", "value": "None"}]'
---
apiVersion: builtin
kind: ReplacementTransformer
metadata: {name: copy}
replacements:
- source: {kind: Service, name: web, fieldPath: spec.type}
  targets: [{select: {kind: Deployment}, fieldPaths: [spec.template.metadata.labels.type], options: {create: true}}]
---
apiVersion: builtin
kind: ValueAddTransformer
metadata: {name: value}
value: root
targets:
- {fieldPath: spec/storageClassName, selector: {kind: PersistentVolumeClaim}, filePathPosition: 1}
- {fieldPath: metadata/annotations/added\\/here, selector: {kind: Ingress}}
""",  # noqa: E501
    "over/folder/kustomization.yaml": "resources: [n.yaml]\nnamePrefix: some-\n",
    "over/folder/n.yaml": "{apiVersion: builtin, kind: NamespaceTransformer, metadata: {name: n, "
    "namespace: deep}, "
    "setRoleBindingSubjects: allServiceAccounts, unsetOnly: true}\n",
    "over/generators.yaml": """\
apiVersion: builtin
kind: ConfigMapGenerator
metadata: {name: made, namespace: other}
literals: [a=1, b=true]
options: {labels: {x: "1"}}
---
apiVersion: builtin
kind: SecretGenerator
metadata: {name: ignored}
name: secret
type: Some
literals: [c=d]
---
apiVersion: builtin
kind: IAMPolicyGenerator
metadata: {name: iam}
cloud: gke
kubernetesService: {namespace: k, name: account}
serviceAccount: {name: google, projectId: project}
""",
    "over/check.yaml": "{apiVersion: builtin, kind: LabelTransformer, metadata: {name: none}}\n",
}
CRDS = """\
{"x/v1.Bee": {"Schema": {"properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"},
  "metadata": {"$ref": "meta"}, "spec": {"$ref": "x/v1.BeeSpec"}}}},
 "x/v1.BeeSpec": {"Schema": {"properties": {
  "secretRef": {"$ref": "ref", "x-kubernetes-object-ref-api-version": "v1", "x-kubernetes-object-ref-kind": "Secret"},
  "mapRef": {"x-kubernetes-object-ref-api-version": "v1", "x-kubernetes-object-ref-kind": "ConfigMap",
             "x-kubernetes-object-ref-name-key": "key"},
  "notes": {"x-kubernetes-annotation": ""}, "labels": {"x-kubernetes-label-selector": ""},
  "id": {"x-kubernetes-identity": ""}}}}}
"""  # noqa: E501
OPENAPI = """\
definitions:
  v1.Bee:
    properties:
      spec: {$ref: "#/definitions/v1.Spec"}
    x-kubernetes-group-version-kind: [{group: x.io, kind: Bee, version: v1}]
  v1.Spec:
    properties:
      wings:
        type: array
        items: {type: object}
        x-kubernetes-patch-merge-key: side
        x-kubernetes-patch-strategy: merge
      names: {type: array, items: {type: string}, x-kubernetes-patch-strategy: merge}
paths:
  /apis/x.io/v1/hives/{name}:
    get: {x-kubernetes-group-version-kind: {group: x.io, kind: Hive, version: v1}}
"""
BEE = """\
apiVersion: x.io/v1
kind: Bee
metadata: {name: b}
spec:
  wings: [{side: left, length: 1}, {side: right, length: 2}]
  names: [a, b]
  legs: [{name: x}]
  secretRef: {name: s}
  mapRef: {key: m}
  notes: {}
  labels: {}
  id: i
"""
CASES |= {
    "configurations": CUSTOM,
    "configurations in the overlay": {
        **CUSTOM,
        "base/kustomization.yaml": "resources: [c.yaml, s.yaml]\n",
        "over/kustomization.yaml": "resources: [../base]\nconfigurations: [a.yaml, "
        "b.yaml]\nnameSuffix: -s\n"
        "namespace: place\n",
        "over/a.yaml": CONFIGURATION,
        "over/b.yaml": "nameSuffix:\n- {path: spec/secretName, kind: Certificate}\n",
    },
    "transformers, generators and validators": PLUGINS,
    "crds": {
        "over/kustomization.yaml": "resources: [b.yaml]\ncrds: [c.json]\nnamePrefix: "
        "p-\ncommonLabels: {l: m}\n"
        "commonAnnotations: {note: o}\nsecretGenerator: [{name: s}]\n"
        "configMapGenerator: [{name: m}]\n",
        "over/c.json": CRDS,
        "over/b.yaml": BEE,
    },
    "openapi": {
        "over/kustomization.yaml": "resources: [b.yaml, h.yaml]\nopenapi: {path: "
        "o.yaml}\nnamespace: place\n"
        "patches: [{path: p.yaml}]\n",
        "over/o.yaml": OPENAPI,
        "over/b.yaml": BEE,
        "over/h.yaml": "{apiVersion: x.io/v1, kind: Hive, metadata: {name: h}}\n",
        "over/p.yaml": """\
apiVersion: x.io/v1
kind: Bee
metadata: {name: b}
spec:
  wings: [{side: right, length: 5}, {side: tail}, {$patch: delete, side: left}]
  names: [c]
  legs: [{name: y}]
""",
    },
    "merged lists of built-in types": {
        **BASE,
        "over/kustomization.yaml": "resources: [../base]\npatches: [{path: p.yaml}]\n",
        "over/p.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, finalizers: [x/y]}
spec:
  template:
    spec:
      tolerations: [{key: a}]
      containers:
      - name: side
        image: side
      - name: web
        ports: [{containerPort: 80, protocol: UDP}, {containerPort: 81}]
        env: [{name: A, $patch: delete}, {name: Z, value: z}]
      volumes:
      - {$patch: replace}
      - {name: only, emptyDir: {}}
""",
    },
}
CASES |= {
    "labels that a base adds change with each other": {
        **BASE,
        "mid/kustomization.yaml": "resources: [../base]\n"
        "labels: [{pairs: {env: prod, tier: a}, includeSelectors: true}]\n",
        "over/kustomization.yaml": """\
resources: [../mid]
labels: [{pairs: {env: dev}}]
patches:
- patch: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {tier: b}}}"
""",
    },
    "nulls of objects that are patched": {
        "over/kustomization.yaml": "resources: [p.yaml]\npatches: [{path: q.yaml}]\n",
        "over/p.yaml": """\
apiVersion: v1
kind: Pod
metadata:
  name: a
  annotations:
  creationTimestamp: null
spec:
  volumes:
  - name: v
    emptyDir:
  containers:
  - {name: c, image: nginx, tty: null}
status:
---
apiVersion: v1
kind: Pod
metadata: {name: b, annotations: {x: null}}
spec:
  volumes:
""",
        "over/q.yaml": "{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {x: y}}, spec: "
        "{dnsPolicy: Default}}\n",
    },
    "values of created fields": {
        **BASE,
        "over/kustomization.yaml": """\
resources: [../base]
replacements:
- source: {kind: Deployment, name: web, fieldPath: spec.template.spec.containers.0.env.0.value}
  targets: [{select: {kind: Deployment}, fieldPaths: [spec.made], options: {create: true}}]
transformers:
- "{apiVersion: builtin, kind: ValueAddTransformer, metadata: {name: v}, value: '7', targets: [{fieldPath: spec/new}]}"
- "{apiVersion: builtin, kind: PrefixTransformer, metadata: {name: p}, prefix: '1',
   fieldSpecs: [{path: spec/first, create: true}]}"
""",  # noqa: E501
    },
    "labels of patches with targets are texts": {
        **BASE,
        "over/kustomization.yaml": """\
resources: [../base]
patches:
- target: {kind: Service}
  patch: "{apiVersion: v1, kind: Service, metadata: {name: x, labels: {a: null, b: 1, c: true}}}"
""",
    },
    "origins and transformations": {
        **BASE,
        "over/kustomization.yaml": "resources: [../base]\nbuildMetadata: [originAnnotations, "
        "transformerAnnotations]\n"
        "namePrefix: p-\nconfigMapGenerator: [{name: made, literals: [a=b]}]\n"
        "transformers: [t.yaml]\n",
        "over/t.yaml": "{apiVersion: builtin, kind: LabelTransformer, metadata: {name: l}, "
        "labels: {x: z}, "
        "fieldSpecs: [{path: metadata/labels, create: true}]}\n",
    },
}
