"""The deletion of leftovers after errors that no real cluster can be made to return."""

from typing import Any

import pytest

from konverge.errors import ConflictError, KindNotServedError, KindUnreachableError, NotFoundError
from konverge_box._internal.file import OnDelete
from konverge_box._internal.file.model import DeleteGroup, DeleteTarget
from konverge_box._internal.steps import StepError, build_scope
from konverge_box._internal.steps.deletion import Deletion, remove_leftovers
from konverge_box.expressions import EvaluationEnvironment
from tests.box.steps.sample_plans import NOW, build_owner, build_plan, list_entries, to_stored_object

pytestmark = pytest.mark.anyio


class Refusing:
    """A cluster that responds to every request with one error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def _refuse(self, *args: Any, **named: Any) -> Any:
        raise self.error

    mapping = get = create = patch = delete = _refuse


ELSEWHERE = [
    to_stored_object(each.object, owned=False)
    for each in list_entries(build_plan("onReconcile: {configMaps: [{name: x, namespace: there}]}"))
    if each.object is not None
]


@pytest.mark.parametrize("error", [NotFoundError("gone"), ConflictError("another"), KindNotServedError("no kind")])
async def test_what_is_gone_is_not_missed(error: Exception) -> None:
    await remove_leftovers(ELSEWHERE, build_owner(), Refusing(error), "spec.crds.web")


async def test_what_may_still_be_there_holds_the_owner() -> None:
    cluster = Refusing(KindUnreachableError("no server responds"))

    with pytest.raises(StepError, match=r"spec.crds.web: ConfigMap there/x: no server responds"):
        await remove_leftovers(ELSEWHERE, build_owner(), cluster, "spec.crds.web")


async def test_a_target_of_a_kind_that_nobody_can_tell_of_now_is_waited_for() -> None:
    target = DeleteTarget(name="x", api_version="test.konverge.dev/v1", kind="Boat")
    deletion = Deletion(OnDelete(groups=(DeleteGroup(delete={"custom": (target,)}),)), "onDelete", "box")
    owner = build_owner()
    scope = build_scope(owner, EvaluationEnvironment(now=NOW))

    assert (await deletion.run_step(scope, owner, Refusing(KindNotServedError("no kind")), NOW)).done
    with pytest.raises(StepError, match="Boat x: no server responds"):
        await deletion.run_step(scope, owner, Refusing(KindUnreachableError("no server responds")), NOW)
