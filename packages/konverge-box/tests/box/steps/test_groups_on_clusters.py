"""The groups of a box on a cluster, reconcile by reconcile."""

from __future__ import annotations

from datetime import timedelta

import pytest

from konverge.kube import GroupVersionKind, ObjectKey, has_owner
from konverge_box._internal.steps.labels import CREATED, OWNER_UID
from konverge_cluster.testing import Cluster
from tests.box.steps.site_harness import CONFIG_MAP, JOB, SECRET, SiteHarness
from tests.component.app import APP

pytestmark = pytest.mark.anyio

_DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
_SERVICE = GroupVersionKind("", "v1", "Service")


@pytest.fixture
async def site(cluster: Cluster) -> SiteHarness:
    return SiteHarness(cluster)


async def test_what_is_kept_is_corrected_and_at_rest_nothing_is_sent(site: SiteHarness) -> None:
    """Contradiction 5: compare first; an object without differences gets no request."""
    await site.open("onReconcile: {configMaps: [{name: kept, data: {a: '{{ spec.a }}'}}]}", a=1)
    await site.reconcile()
    made = await site.get(CONFIG_MAP, "kept")
    assert made["data"] == {"a": "1"}
    assert has_owner(made, (await site.owner())["metadata"]["uid"])
    assert (await site.condition()).status == "True"

    await site.cluster.client.patch(
        CONFIG_MAP, ObjectKey(site.key.namespace, "kept"), {"data": {"a": "drift"}}, patch_type="merge"
    )
    await site.reconcile()
    assert (await site.get(CONFIG_MAP, "kept"))["data"] == {"a": "1"}

    settled = site.writes()
    await site.reconcile()
    await site.reconcile()
    assert site.writes() == settled


async def test_what_on_create_made_is_left_alone_and_not_made_again(site: SiteHarness) -> None:
    """Contradiction 3: an object that a user deletes is not created again."""
    await site.open("onCreate: {configMaps: [{name: once, data: {a: b}}, {name: kept, reconcile: true}]}")
    await site.reconcile()
    assert CREATED in (await site.owner())["metadata"]["annotations"]

    await site.cluster.client.patch(
        CONFIG_MAP, ObjectKey(site.key.namespace, "once"), {"data": {"a": "mine"}}, patch_type="merge"
    )
    await site.reconcile()
    assert (await site.get(CONFIG_MAP, "once"))["data"] == {"a": "mine"}

    await site.remove(CONFIG_MAP, "once")
    await site.remove(CONFIG_MAP, "kept")
    await site.reconcile()
    assert await site.find(CONFIG_MAP, "once") is None
    assert await site.find(CONFIG_MAP, "kept") is not None


async def test_a_switch_between_variants_changes_the_object_and_its_end_deletes_it(site: SiteHarness) -> None:
    """Contradiction 4: a condition that turns false deletes an object, unless another entry declares it."""
    await site.open(
        """
        onReconcile:
          - name: small
            when: [{field: spec.size, equals: small}]
            configMaps: [{name: settings, data: {size: s}}]
          - name: large
            configMaps: [{name: settings, data: {size: l}, when: [{field: spec.size, equals: large}]}]
        """,
        size="small",
    )
    await site.reconcile()
    small = await site.get(CONFIG_MAP, "settings")

    await site.change_spec(size="large")
    await site.reconcile()
    large = await site.get(CONFIG_MAP, "settings")
    assert (small["data"], large["data"]) == ({"size": "s"}, {"size": "l"})
    assert small["metadata"]["uid"] == large["metadata"]["uid"]
    assert (await site.condition("SmallReady")).reason == "Disabled"

    await site.change_spec(size="none")
    await site.reconcile()
    assert await site.find(CONFIG_MAP, "settings") is None


async def test_the_objects_of_removed_elements_go_and_those_of_others_stay(site: SiteHarness) -> None:
    """Contradiction 7: items are in scope everywhere, and their objects are deleted with them."""
    await site.open(
        """
        onReconcile:
          configMaps:
            - name: "host-{{ host }}"
              forEach: {field: spec.hosts, as: host}
              when: [{field: host, notEquals: skipped}]
              data: {host: "{{ host }}", number: "{{ index }}"}
        """,
        hosts=["a", "skipped", "b"],
    )
    foreign = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "host-c", "namespace": site.key.namespace}}
    await site.cluster.client.create(foreign)
    await site.reconcile()
    assert (await site.get(CONFIG_MAP, "host-b"))["data"] == {"host": "b", "number": "2"}
    assert await site.find(CONFIG_MAP, "host-skipped") is None

    await site.change_spec(hosts=["b"])
    await site.reconcile()
    assert await site.find(CONFIG_MAP, "host-a") is None
    assert (await site.get(CONFIG_MAP, "host-b"))["data"] == {"host": "b", "number": "0"}
    assert await site.find(CONFIG_MAP, "host-c") is not None


async def test_values_that_are_made_once_are_kept_and_made_anew_only_when_somebody_deletes_them(
    site: SiteHarness,
) -> None:
    await site.open("onCreate: {secrets: [{name: key, once: true, stringData: {key: '{{ randomHex(16) }}'}}]}")
    await site.reconcile()
    first = await site.get(SECRET, "key")

    site.reload("onCreate: {secrets: [{name: key, once: true, stringData: {key: a, more: b}}]}")
    await site.reconcile()
    assert (await site.get(SECRET, "key"))["data"] == first["data"]

    site.reload("onCreate: {secrets: [{name: key, once: true, stringData: {key: '{{ randomHex(16) }}'}}]}")
    await site.remove(SECRET, "key")
    await site.reconcile()
    second = await site.get(SECRET, "key")
    assert second["data"].keys() == first["data"].keys()
    assert second["data"] != first["data"]


ONCE = """
onCreate:
  - name: keys
    secrets: [{name: key, once: true, stringData: {key: '{{ randomHex(16) }}'}}]
"""


async def test_a_site_born_again_waits_for_the_secret_of_its_former_life_and_makes_its_own(site: SiteHarness) -> None:
    await site.open(ONCE)
    await site.reconcile()
    first = await site.get(SECRET, "key")
    key = ObjectKey.of(first)
    held = {"metadata": {"finalizers": ["konverge.test/hold"]}}
    await site.cluster.client.patch(SECRET, key, held, patch_type="merge")
    await site.cluster.client.delete(APP, site.key)
    await site.open(ONCE)

    await site.reconcile()
    condition = await site.condition("KeysReady")
    assert condition.reason == "Blocked"
    assert condition.message == f"waiting until Secret {key} of an earlier TestApp site is gone"
    assert (await site.get(SECRET, "key"))["data"] == first["data"]

    async def is_going() -> bool:
        return "deletionTimestamp" in (await site.get(SECRET, "key"))["metadata"]

    await site.cluster.eventually(is_going, timeout_seconds=60, describe="the object without an owner is deleted")
    await site.cluster.client.patch(SECRET, key, {"metadata": {"finalizers": None}}, patch_type="merge")
    await site.reconcile_until("Healthy", "KeysReady")
    second = await site.get(SECRET, "key")
    assert second["data"] != first["data"]
    assert has_owner(second, (await site.owner())["metadata"]["uid"])


async def test_a_secret_that_a_former_life_left_behind_stays_with_its_values_and_goes_with_nobody(
    site: SiteHarness,
) -> None:
    await site.open(ONCE)
    await site.reconcile()
    first = await site.get(SECRET, "key")
    # By hand. A deletion with the propagation Orphan deletes dependents that the garbage collector has not seen yet.
    key = ObjectKey(site.key.namespace, "key")
    await site.cluster.client.patch(SECRET, key, {"metadata": {"ownerReferences": None}}, patch_type="merge")
    await site.remove(APP, site.key.name)
    await site.open(ONCE)
    await site.reconcile_until("Healthy", "KeysReady")
    second = await site.get(SECRET, "key")
    assert second["data"] == first["data"]
    assert not has_owner(second, (await site.owner())["metadata"]["uid"])

    site.reload("onCreate: {configMaps: [{name: other}]}")
    await site.reconcile()
    assert await site.find(SECRET, "key") is not None


async def test_values_are_made_anew_when_they_have_their_age(site: SiteHarness) -> None:
    await site.open(
        """
        onCreate:
          secrets:
            - {name: key, rotateAfter: 1h, stringData: {key: '{{ randomHex(16) }}'}}
            - {name: cert, tls: {commonName: site, dnsNames: ["{{ spec.host }}"], validFor: 3d}}
        """,
        host="site.example",
    )
    begin = site.now()
    plan = await site.reconcile()
    first, certificate = await site.get(SECRET, "key"), await site.get(SECRET, "cert")
    assert certificate["type"] == "kubernetes.io/tls"
    assert sorted(certificate["data"]) == ["ca.crt", "tls.crt", "tls.key"]
    assert plan.requeue_at is not None
    assert abs(plan.requeue_at - begin - timedelta(hours=1)) < timedelta(minutes=1)

    site.ahead = timedelta(minutes=50)
    await site.reconcile()
    assert (await site.get(SECRET, "key"))["data"] == first["data"]

    site.ahead = timedelta(minutes=61)
    await site.reconcile()
    assert (await site.get(SECRET, "key"))["data"] != first["data"]
    assert (await site.get(SECRET, "cert"))["data"] == certificate["data"]

    site.ahead = timedelta(days=2, minutes=1)
    await site.reconcile()
    assert (await site.get(SECRET, "cert"))["data"] != certificate["data"]


async def test_the_annotation_of_a_user_makes_new_values_once(site: SiteHarness) -> None:
    await site.open("onCreate: {secrets: [{name: key, once: true, stringData: {key: '{{ randomHex(16) }}'}}]}")
    await site.reconcile()
    first = await site.get(SECRET, "key")

    async def annotate(text: str) -> None:
        body = {"metadata": {"annotations": {"konverge.dev/rotate": text}}}
        await site.cluster.client.patch(SECRET, ObjectKey.of(first), body, patch_type="merge")

    await annotate("1")
    await site.reconcile()
    second = await site.get(SECRET, "key")
    assert second["data"] != first["data"]
    assert second["metadata"]["uid"] == first["metadata"]["uid"]

    await site.reconcile()
    assert (await site.get(SECRET, "key"))["data"] == second["data"]

    await annotate("2")
    await site.reconcile()
    assert (await site.get(SECRET, "key"))["data"] != second["data"]


async def test_loops_in_loops_keep_their_objects_in_another_order_of_the_items(site: SiteHarness) -> None:
    ada, bob = {"name": "ada", "environments": ["dev", "prod"]}, {"name": "bob", "environments": ["dev"]}
    await site.open(
        """
        onReconcile:
          configMaps:
            - forEach:
                - {field: spec.members, as: member, key: "{{ member.name }}"}
                - {field: "{{ member.environments | filter(e, e != 'old') }}", as: environment}
              data: {who: "{{ member.name }}"}
        """,
        members=[ada, bob],
    )
    await site.reconcile()
    before = {name: await site.get(CONFIG_MAP, name) for name in ("site-ada-dev", "site-ada-prod", "site-bob-dev")}
    writes = len(site.writes())

    await site.change_spec(members=[bob, {**ada, "environments": ["old", "prod", "dev"]}])
    await site.reconcile()

    assert len(site.writes()) == writes
    assert {name: await site.get(CONFIG_MAP, name) for name in before} == before
    await site.change_spec(members=[bob])
    await site.reconcile()
    assert [await site.find(CONFIG_MAP, name) is None for name in before] == [True, True, False]


async def test_an_object_is_ready_by_the_conditions_of_the_file(site: SiteHarness) -> None:
    await site.open(
        """
        onReconcile:
          configMaps: [{name: gate, readyWhen: ["{{ self.data.state == 'done' }}", {field: self.metadata.uid}]}]
        """
    )
    await site.reconcile()
    waiting = await site.condition()
    assert (waiting.status, waiting.reason) == ("False", "OperationPending")
    assert "waiting for self.data.state" in waiting.message

    body = {"data": {"state": "done"}}
    await site.cluster.client.patch(CONFIG_MAP, ObjectKey(site.key.namespace, "gate"), body, patch_type="merge")
    await site.reconcile()

    assert (await site.condition()).status == "True"


LATE = """
onReconcile:
  - name: net
    services: [{name: front, port: 80}]
  - name: web
    configMaps:
      - name: address
        data: {ip: "{{ children.service.spec.clusterIP }}", all: "{{ mapKeys(children.services) | join(',') }}"}
"""


async def test_a_later_group_reads_the_values_that_the_server_gave_an_earlier_one_at_once(site: SiteHarness) -> None:
    await site.open(LATE)

    await site.reconcile()

    service = await site.get(_SERVICE, "front")
    address = await site.get(CONFIG_MAP, "address")
    assert service["spec"]["clusterIP"]
    assert address["data"] == {"ip": service["spec"]["clusterIP"], "all": "front"}
    assert (await site.condition("WebReady")).status == "True"
    writes = site.writes()
    await site.reconcile()
    assert site.writes() == writes


async def test_a_value_that_is_missing_blocks_its_reader_and_changes_no_existing_object(site: SiteHarness) -> None:
    steps = """
    onReconcile:
      - name: first
        configMaps: [{name: source, data: {a: "{{ spec.a }}"}}]
      - name: second
        configMaps: [{name: copy, data: {a: "{{ children.configMap.data.%s }}"}}]
    """
    await site.open(steps % "a", a="1")
    await site.reconcile()
    assert (await site.get(CONFIG_MAP, "copy"))["data"] == {"a": "1"}

    await site.change_spec(a="2")
    await site.reconcile()
    assert (await site.get(CONFIG_MAP, "copy"))["data"] == {"a": "2"}

    site.reload(steps % "b")
    await site.reconcile()
    blocked = await site.condition("SecondReady")
    assert (blocked.status, blocked.reason) == ("False", "Blocked")
    assert "waiting for children.configMap.data.b" in blocked.message
    assert (await site.get(CONFIG_MAP, "copy"))["data"] == {"a": "2"}


async def test_a_later_group_reads_no_object_whose_adoption_is_refused(site: SiteHarness) -> None:
    foreign = {"name": "key", "namespace": site.key.namespace}
    await site.cluster.client.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": foreign, "stringData": {"word": "theirs"}}
    )
    await site.open(
        """
        onCreate: {secrets: [{name: key, once: true, adopt: false, stringData: {word: ours}}]}
        onReconcile: {configMaps: [{name: copy, data: {word: "{{ children.secret.data.word }}"}}]}
        """
    )

    await site.reconcile()

    assert await site.find(CONFIG_MAP, "copy") is None
    blocked = await site.condition("ResourcesReady")
    assert (blocked.reason, "waiting for children.secret.data" in blocked.message) == ("Blocked", True)


async def test_a_job_does_not_run_again_after_it_was_removed_nor_is_it_changed(site: SiteHarness) -> None:
    steps = "onReconcile: {jobs: [{name: setup, image: 'konverge.test/app:%s'}]}"
    await site.open(steps % 1)
    await site.reconcile()
    job = await site.get(JOB, "setup")

    site.reload(steps % 2)
    await site.reconcile()
    assert (await site.get(JOB, "setup"))["spec"] == job["spec"]

    await site.remove(JOB, "setup")
    await site.reconcile()
    assert await site.find(JOB, "setup") is None
    assert (await site.condition()).status == "True"


async def test_a_copy_waits_for_its_source_follows_it_and_is_known_again_without_an_owner(site: SiteHarness) -> None:
    other = f"{site.key.namespace}-copy"
    await site.cluster.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    await site.open(
        f"""
        onReconcile:
          secrets: [{{name: copy, fromSecret: {{name: keys}}, toNamespaces: [{other}]}}]
          configMaps: [{{name: later}}]
        """
    )
    await site.reconcile()
    condition = await site.condition()
    assert (condition.reason, condition.message) == ("Blocked", f"waiting for Secret {site.key.namespace}/keys")
    assert await site.find(CONFIG_MAP, "later") is None

    keys = {"name": "keys", "namespace": site.key.namespace}
    source = {"apiVersion": "v1", "kind": "Secret", "metadata": keys, "stringData": {"a": "b"}}
    await site.cluster.client.create(source)
    await site.reconcile()
    copy = await site.find(SECRET, "copy", other)
    owner = await site.owner()
    assert copy is not None
    assert copy["data"] == {"a": "Yg=="}
    assert "ownerReferences" not in copy["metadata"]
    assert copy["metadata"]["labels"][OWNER_UID] == owner["metadata"]["uid"]
    assert await site.find(CONFIG_MAP, "later") is not None

    left = await site.groups.find_leftovers(owner, site.reader)
    assert [(obj["metadata"]["namespace"], obj["metadata"]["name"]) for obj in left] == [(other, "copy")]


async def test_a_group_waits_for_an_earlier_one_and_a_resource_for_its_conditions(site: SiteHarness) -> None:
    await site.open(
        """
        onReconcile:
          - name: storage
            configMaps: [{name: first, waitFor: [{field: spec.ready, equals: true}]}]
          - name: web
            waitsFor: [storage]
            configMaps: [{name: second}]
        """
    )
    await site.reconcile()
    storage, web = await site.condition("StorageReady"), await site.condition("WebReady")
    assert (storage.reason, storage.message) == ("Blocked", "waiting for spec.ready equals true")
    assert web.reason == "PrerequisiteNotMet"
    assert await site.find(CONFIG_MAP, "second") is None

    await site.change_spec(ready=True)
    await site.reconcile()
    assert await site.find(CONFIG_MAP, "second") is not None


async def test_a_suspended_group_keeps_its_configuration_and_no_pods(site: SiteHarness) -> None:
    await site.open(
        """
        onReconcile:
          suspend: [{field: spec.paused, equals: true}]
          deployments: [{name: web, image: "konverge.test/app:1", replicas: 2}]
          services: [{name: web, port: 80}]
        """,
        paused=False,
    )
    await site.reconcile_until("Healthy")

    await site.change_spec(paused=True)
    await site.reconcile_until("Suspended")
    deployments = await site.client.list(_DEPLOYMENT, namespace=site.key.namespace)
    assert [each["spec"]["replicas"] for each in deployments.items] == [0]
    assert await site.find(_SERVICE, "web") is not None


async def test_what_cannot_be_rendered_fails_its_group_alone_with_the_path(site: SiteHarness) -> None:
    await site.open(
        """
        onReconcile:
          - {name: broken, configMaps: [{name: a}, {name: b, data: {x: "{{ spec.no.host }}"}}]}
          - {name: whole, configMaps: [{name: c}]}
        """
    )
    await site.reconcile()

    broken = await site.condition("BrokenReady")
    assert broken.reason == "Error"
    assert "spec.crds.web.onReconcile[0].configMaps[1].data.x" in broken.message
    assert (await site.condition("WholeReady")).status == "True"
    assert await site.find(CONFIG_MAP, "a") is not None
