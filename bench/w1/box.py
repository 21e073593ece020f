"""W1's operator as a box: the same five objects in the same two groups."""

from __future__ import annotations

__all__ = ["BOX"]

BOX = """
apiVersion: konverge.dev/v1alpha1
kind: OperatorBox
metadata:
  name: w1-box
spec:
  crds:
    parent:
      resource:
        apiVersion: bench.konverge.dev/v1
        kind: Parent
        schema:
          spec:
            required: [image]
            properties:
              image: {type: string}
              greeting: {type: string, default: Hello}
      onReconcile:
        - name: settings
          configMaps:
            - labels: {app.kubernetes.io/instance: "{{ metadata.name }}"}
              data:
                GREETING: "{{ spec.greeting }}"
                SETTING_0: "0"
                SETTING_1: "1"
                SETTING_2: "2"
                SETTING_3: "3"
                SETTING_4: "4"
          secrets:
            - labels: {app.kubernetes.io/instance: "{{ metadata.name }}"}
              data: {STORE_URL: cmVkaXM6Ly9zdG9yZQ==}
        - name: application
          waitsFor: [settings]
          serviceAccounts:
            - labels: {app.kubernetes.io/instance: "{{ metadata.name }}"}
          services:
            - labels: {app.kubernetes.io/instance: "{{ metadata.name }}"}
              manifest:
                spec: {ports: [{name: http, port: 80, targetPort: 8080}]}
          deployments:
            - labels: {app.kubernetes.io/instance: "{{ metadata.name }}"}
              image: "{{ spec.image }}"
              replicas: 0
              serviceAccountName: "{{ metadata.name }}"
              resources: {requests: {cpu: 100m, memory: 64Mi}}
              envFrom:
                - configMapRef: {name: "{{ metadata.name }}"}
                - secretRef: {name: "{{ metadata.name }}"}
              manifest:
                spec:
                  template:
                    spec:
                      containers:
                        - name: main
                          ports: [{name: http, containerPort: 8080}]
"""
