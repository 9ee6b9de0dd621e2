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
    "replicas": over("replicas:\n- {name: web, count: 7}\n- {name: db, count: 2}\nnamePrefix: p-\n"),
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
    "JSON patch in a file": over("patches:\n- path: p.yaml\n  target: {labelSelector: x=y}\n",
                                 p__yaml='[{"op":"add","path":"/metadata/labels/new","value":"1"}]'),
    "patch of a custom resource": over("""\
patches:
- patch: |
    apiVersion: sea.example/v1
    kind: Boat
    metadata: {name: titanic}
    spec: {sails: [{name: b}], crew: 3}
"""),
    "patchesStrategicMerge": over("patchesStrategicMerge: [p.yaml]\n", p__yaml="""\
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  ports:
  - {port: 443, name: tls}
  - {port: 80, name: http}
"""),
    "patchesJson6902": over("""\
patchesJson6902:
- target: {version: v1, kind: Service, name: web}
  path: p.json
""", p__json='[{"op":"test","path":"/spec/ports/0/port","value":80},'
             '{"op":"move","from":"/spec/selector/app","path":"/spec/selector/run"}]'),
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
    "generated from files": over("""\
configMapGenerator:
- name: f
  files: [a.txt, key=b.txt]
  envs: [e.env]
secretGenerator:
- name: s
  type: kubernetes.io/tls
  files: [tls.crt=a.txt]
  options: {disableNameSuffixHash: true, immutable: true}
""", a__txt="hello\nworld\n", b__txt="x" * 100, e__env="# c\nA=1\n  B=2\nC=\n\nD=a=b\n"),
    "long secret": over("secretGenerator:\n- name: s\n  files: [a.txt]\n", a__txt="hello world " * 20),
    "without hashes": over("configMapGenerator:\n- name: plain\n  literals: [a=b]\n"
                           "generatorOptions: {disableNameSuffixHash: true}\n"),
    "component": {**over("components: [../comp]\nnamePrefix: z-\n"), "comp/kustomization.yaml": """\
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
"""},
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
    "order of kinds": over("sortOptions: {order: legacy, legacySortOptions: {orderFirst: [Service], "
                           "orderLast: [Namespace]}}\n"),
    "old fields": {**BASE, "over/kustomization.yaml": "bases: [../base]\nimageTags:\n- name: nginx\n  newTag: '2'\n"},
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
        "over/l.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n"
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
}  # fmt: skip
