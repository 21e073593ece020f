"""Requests to the API server: what they ask for, done, and answered. Knows HTTP's words but no network."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from konverge.clock import Clock, Entropy
from konverge.errors import (
    ApiError,
    BadRequestError,
    ExpiredError,
    KindNotServedError,
    ServerError,
    TooManyRequestsError,
)
from konverge.kube import Object
from konverge.localcluster import failures
from konverge.localcluster.access.attributes import attributes_of
from konverge.localcluster.access.authorization import AllowsEverything
from konverge.localcluster.access.gate import Gate
from konverge.localcluster.access.reviews import Reviews
from konverge.localcluster.access.tokens import Tokens
from konverge.localcluster.access.users import User
from konverge.localcluster.answers import Answer, Request, StreamAnswer, failure, json_answer
from konverge.localcluster.apiserver import ApiServer
from konverge.localcluster.audit import AuditLog, Entry
from konverge.localcluster.conversion import WebhookConversion
from konverge.localcluster.deletion import JOB_WARNING, DeleteOptions, is_released
from konverge.localcluster.documents import Documents
from konverge.localcluster.incoming import FieldValidation
from konverge.localcluster.logs import LogOptions, LogStream, log_text, named_container
from konverge.localcluster.media import APPLY_TYPES, PATCH_TYPES, Body, accept_of, decode_body, media_type_of
from konverge.localcluster.parameters import DeleteParameters, ListParameters, WriteParameters, is_true
from konverge.localcluster.pods import bind, evict
from konverge.localcluster.rendering import Renderer
from konverge.localcluster.resources import Resource
from konverge.localcluster.routes import Target, Verb, target_of, verb_of
from konverge.localcluster.scale import scale_of
from konverge.localcluster.selection import Selection
from konverge.localcluster.storage import Stored
from konverge.localcluster.streams import WatchStream, expired
from konverge.localcluster.webhooks.consulting import Call, Caller, Consulting, Reply, at_once, consult
from konverge.localcluster.writing import Write

__all__ = ["RequestHandler"]

_log = logging.getLogger(__name__)

_TEXT = {"content-type": "text/plain"}
_MAXIMUM_WATCHES = 1_000
_MANAGER_LIMIT = 128
# Kinds of which a delete answers the object, not only that it worked.
_DELETED_IS_SHOWN = frozenset({"pods", "services", "persistentvolumeclaims", "persistentvolumes", "serviceaccounts"})


class _Asked(NamedTuple):
    """One request, understood.

    Attributes:
        target: What it is about.
        request: As it was sent.
        user: Who asks.
        warnings: Gets what the answer warns of.
    """

    target: Target
    request: Request
    user: User
    warnings: list[str]


class RequestHandler:
    """Answers requests, and remembers them.

    Args:
        api: The server behind it.
        clock: Times the record, and the bookmarks and ends of watches.
        entropy: Spreads the ends of watches.
        audit: Gets an entry for each request.
        caller: Calls webhooks; None when nobody can.
        gate: Knows who asks and lets through what they may do; None to let everybody do everything.
    """

    def __init__(
        self,
        api: ApiServer,
        *,
        clock: Clock,
        entropy: Entropy,
        audit: AuditLog,
        caller: Caller | None = None,
        gate: Gate | None = None,
    ) -> None:
        self._api = api
        self._clock = clock
        self._entropy = entropy
        self._audit = audit
        self._caller = caller or _nobody
        tokens = Tokens(api.storage, clock, entropy, {})
        self._gate = gate or Gate(tokens, AllowsEverything(), is_open=True)
        self._reviews = Reviews(self._gate, clock)
        self._documents = Documents(api.resources, self._reviews)
        self._watches: set[WatchStream] = set()

    async def answer(self, request: Request) -> Answer | StreamAnswer:
        """Answer one request, with the webhooks that have to be asked; whatever goes wrong is an answer, too."""
        return await consult(self._handled(request), self._caller)

    def handle(self, request: Request) -> Answer | StreamAnswer:
        """The same for a request about which no webhook has to be asked.

        Raises:
            ConsultationNeededError: One has to be.
        """
        return at_once(self._handled(request))

    def _handled(self, request: Request) -> Consulting[Answer | StreamAnswer]:
        verb: str = request.method.lower()
        warnings: list[str] = []
        try:
            is_watch = is_true(request.query, "watch")
            user = self._gate.user_of(request.headers, trusted=request.trusted)
            self._gate.check(user, attributes_of(request.method, request.path, request.query, is_watch=is_watch))
            target = target_of(request.path, self._api.resources)
            if target is None:
                answer: Answer | StreamAnswer = self._documents.answer(request, user)
            else:
                found = verb_of(request.method, target, is_watch=is_watch)
                if found is None:
                    raise failures.unsupported_method()
                verb = found
                answer = yield from self._do(found, _Asked(target, request, user, warnings))
        except ApiError as error:
            answer = failure(error)
        except KindNotServedError:
            answer = failure(failures.unknown_path())
        except Exception as error:  # noqa: BLE001 - a mistake of ours must be an answer, not a dead connection; it is logged
            _log.exception("%s %s failed", request.method, request.path)
            answer = failure(ServerError(f"an error on the server has prevented the request: {type(error).__name__}"))
        if warnings and isinstance(answer, Answer):
            answer = Answer(answer.status, answer.body, answer.headers, tuple(dict.fromkeys(warnings)))
        agent = request.headers.get("user-agent", "")
        self._audit.record(Entry(self._clock.now(), agent, verb, request.path, answer.status))
        return answer

    def close(self) -> None:
        """End all watches."""
        for stream in tuple(self._watches):
            stream.end()

    def _do(self, verb: Verb, asked: _Asked) -> Consulting[Answer | StreamAnswer]:
        match verb:
            case "get":
                return (yield from self._get(asked.target, asked.request))
            case "list":
                return (yield from self._list(asked.target, asked.request))
            case "watch":
                return self._watch(asked.target, asked.request)
            case "create":
                return (yield from self._create(asked))
            case "update":
                return (yield from self._update(asked))
            case "patch":
                return (yield from self._patch(asked))
            case "delete":
                return (yield from self._delete(asked))
            case "deletecollection":
                return (yield from self._delete_collection(asked))

    def _get(self, target: Target, request: Request) -> Consulting[Answer | StreamAnswer]:
        found = yield from self._api.verbs.get(target.resource, target.key)
        if target.subresource == "log":
            return self._log(target, request, found)
        if target.subresource == "scale":
            return json_answer(scale_of(target.resource, found))
        return Answer(200, self._renderer(target, request).object(found))

    def _log(self, target: Target, request: Request, pod: Object) -> Answer | StreamAnswer:
        options = LogOptions.parse(request.query, target.name)
        container = named_container(pod, options)
        if not pod["spec"].get("nodeName"):
            return Answer(204, b"", {})
        if options.follow:
            mapping = target.resource.mapping
            stream = LogStream(lambda: self._api.get(mapping, target.key), container, options, self._clock)
            return StreamAnswer(stream, headers=_TEXT)
        return Answer(200, log_text(pod, container, options, self._clock.now()), _TEXT)

    def _list(self, target: Target, request: Request) -> Consulting[Answer]:
        parameters = ListParameters.parse(request.query, is_watch=False)
        wanted, current = parameters.revision, self._api.storage.revision
        if wanted is not None and wanted > current:
            raise failures.too_large_resource_version(wanted, current)
        page = self._api.page(
            target.resource,
            _selection(target, parameters),
            limit=parameters.limit,
            token=parameters.token,
            revision=wanted if parameters.match == "Exact" else None,
        )
        yield from self._api.verbs.conversions.prepare(target.resource, page.items)
        return Answer(200, self._renderer(target, request, is_list=True).page(page))

    def _watch(self, target: Target, request: Request) -> StreamAnswer:
        if len(self._watches) >= _MAXIMUM_WATCHES:
            raise TooManyRequestsError("there are too many watches already", retry_after_seconds=1)
        parameters = ListParameters.parse(request.query, is_watch=True)
        selection = _selection(target, parameters)
        renderer = self._renderer(target, request, is_watch=True)
        revision = parameters.revision
        begins_with_state = parameters.initial_events or not revision
        try:
            watch = self._api.watch(target.resource, selection, after=None if begins_with_state else revision)
        except ExpiredError as error:
            return StreamAnswer(expired(renderer, error))
        stream = WatchStream(
            watch,
            renderer,
            self._clock,
            timeout_seconds=parameters.timeout_seconds or self._entropy.uniform(1800, 3600),
            bookmarks=parameters.bookmarks,
            tells_initial_end=parameters.bookmarks and (bool(parameters.initial_events) or revision == 0),
            on_end=self._watches.discard,
            prepare=self._preparation(target.resource),
        )
        self._watches.add(stream)
        return StreamAnswer(stream)

    def _preparation(self, resource: Resource) -> Callable[[list[Stored]], Awaitable[None]] | None:
        """How events are made ready to be rendered: those of custom resources that a webhook converts, by asking it."""
        if not isinstance(resource.conversion, WebhookConversion):
            return None

        async def prepare(items: list[Stored]) -> None:
            await consult(self._api.verbs.conversions.prepare(resource, items), self._caller)

        return prepare

    def _create(self, asked: _Asked) -> Consulting[Answer]:
        target, request, warnings = asked.target, asked.request, asked.warnings
        parameters = WriteParameters.parse(request.query, "CreateOptions")
        body, fields = self._body(target, request, parameters, warnings)
        if target.subresource == "binding":
            return json_answer(bind(self._api, target.key, body.value, self._clock.now()), 201)
        if target.subresource == "eviction":
            evicted = evict(self._api, target.key, body.value, self._clock.now(), dry_run=parameters.dry_run)
            return json_answer(evicted, 201)
        if target.subresource == "token":
            account = yield from self._api.verbs.get(target.resource, target.key)
            return json_answer(self._reviews.token(account, body.value), 201)
        _check_says_kind(target, body.value)
        obj = _addressed(target, body.value)
        write = self._write(asked, parameters, fields)
        created = yield from self._api.verbs.create(target.resource, obj, write)
        return self._written(target, request, created, 201)

    def _update(self, asked: _Asked) -> Consulting[Answer]:
        target, request, warnings = asked.target, asked.request, asked.warnings
        parameters = WriteParameters.parse(request.query, "UpdateOptions")
        body, fields = self._body(target, request, parameters, warnings)
        obj = _addressed(target, body.value, needs_name=True)
        existed = self._exists(target)
        write = self._write(asked, parameters, fields)
        updated = yield from self._api.verbs.update(target.resource, obj, write, target.subresource)
        return self._written(target, request, updated, 200 if existed else 201)

    def _patch(self, asked: _Asked) -> Consulting[Answer]:
        target, request, warnings = asked.target, asked.request, asked.warnings
        media_type = media_type_of(request.headers.get("content-type", ""))
        is_apply = media_type in APPLY_TYPES
        patch_type = PATCH_TYPES.get(media_type)
        known = [kind for kind in PATCH_TYPES if not (target.resource.is_custom and PATCH_TYPES[kind] == "strategic")]
        if not is_apply and patch_type is None:
            raise failures.unknown_patch_type()
        if not is_apply and media_type not in known:
            raise failures.unsupported_media_type(*known, *APPLY_TYPES)
        parameters = WriteParameters.parse(request.query, "PatchOptions", is_apply=is_apply)
        subject = "error decoding YAML" if is_apply else "error decoding patch"
        body, fields = self._body(target, request, parameters, warnings, subject=subject)
        write = self._write(asked, parameters, fields)
        existed = self._exists(target)
        verbs, resource = self._api.verbs, target.resource
        if patch_type is None:
            obj = _addressed(target, body.value)
            patched = yield from verbs.apply(resource, obj, write, target.subresource, force=parameters.force)
        else:
            patched = yield from verbs.patch(resource, target.key, body.value, patch_type, write, target.subresource)
        return self._written(target, request, patched, 200 if existed else 201)

    def _delete(self, asked: _Asked) -> Consulting[Answer]:
        target, request, warnings = asked.target, asked.request, asked.warnings
        resource = target.resource
        parameters = self._delete_parameters(request)
        if resource.storage == "jobs.batch" and parameters.propagation is None:
            warnings.append(JOB_WARNING)
        last = yield from self._api.verbs.delete(
            resource,
            target.key,
            DeleteOptions(parameters.propagation, parameters.grace_seconds),
            _deletion(parameters, asked),
            uid=parameters.uid,
            resource_version=parameters.resource_version,
        )
        is_gone = is_released(last) or "deletionTimestamp" not in last["metadata"]
        if not is_gone or resource.storage in _DELETED_IS_SHOWN:
            return Answer(200, self._renderer(target, request).object(last))
        details = {"name": target.name, "group": resource.gvk.group, "kind": resource.mapping.plural}
        details = {name: value for name, value in details.items() if value} | {"uid": last["metadata"]["uid"]}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return json_answer(status)

    def _delete_collection(self, asked: _Asked) -> Consulting[Answer]:
        target, request = asked.target, asked.request
        parameters = self._delete_parameters(request)
        listed = ListParameters.parse(request.query, is_watch=False)
        page = self._api.page(target.resource, _selection(target, listed), limit=listed.limit, token=listed.token)
        yield from self._api.verbs.conversions.prepare(target.resource, page.items)
        options = DeleteOptions(parameters.propagation, parameters.grace_seconds)
        write = _deletion(parameters, asked, names_object=False)
        for stored in page.items:
            if self._api.storage.get(target.resource.storage, stored.key) is not None:
                yield from self._api.verbs.delete(target.resource, stored.key, options, write)
        return Answer(200, self._renderer(target, request, is_list=True).page(page))

    def _exists(self, target: Target) -> bool:
        return self._api.storage.get(target.resource.storage, target.key) is not None

    def _delete_parameters(self, request: Request) -> DeleteParameters:
        value = None
        if request.body:
            content_type = request.headers.get("content-type", "")
            value = decode_body(content_type, request.body, "Ignore", kind="DeleteOptions").value
        return DeleteParameters.parse(request.query, value)

    def _body(
        self,
        target: Target,
        request: Request,
        parameters: WriteParameters,
        warnings: list[str],
        *,
        subject: str = "",
    ) -> tuple[Body, FieldValidation]:
        kind = target.resource.gvk.kind
        content_type = request.headers.get("content-type", "")
        body = decode_body(content_type, request.body, parameters.strictness, kind=kind, subject=subject)
        return body, FieldValidation(parameters.strictness, body.duplicates, warnings)

    def _write(self, asked: _Asked, parameters: WriteParameters, fields: FieldValidation) -> Write:
        query = asked.request.query
        options = {name: query[name] for name in ("fieldManager", "fieldValidation") if query.get(name)}
        return Write(
            manager=_manager(parameters, asked.request),
            dry_run=parameters.dry_run,
            fields=fields,
            user=asked.user,
            options=options,
            told=fields.told,
        )

    def _written(self, target: Target, request: Request, obj: Object, status: int) -> Answer:
        if target.subresource == "scale":
            return json_answer(obj, status)
        return Answer(status, self._renderer(target, request).object(obj))

    def _renderer(self, target: Target, request: Request, *, is_list: bool = False, is_watch: bool = False) -> Renderer:
        accepted, group = request.headers.get("accept", ""), target.resource.gvk.group.partition(".")[0] or "core"
        kind = f"{group}.{target.resource.gvk.kind}"
        if is_list:
            why = f"the requested object is a list (*{kind}List)"
            form = accept_of(accepted, unfit="PartialObjectMetadata", why=why)
        else:
            why = f"the requested object is not a list (*{kind})"
            form = accept_of(accepted, unfit="" if is_watch else "PartialObjectMetadataList", why=why)
        included = request.query.get("includeObject", "Metadata")
        return Renderer(target.resource, form, self._clock.now(), included)


async def _nobody(calls: tuple[Call, ...]) -> tuple[Reply, ...]:
    return tuple(Reply(problem="nobody here calls webhooks") for _ in calls)


def _selection(target: Target, parameters: ListParameters) -> Selection:
    field_selector = parameters.field_selector
    if target.name:
        # A watch of one object, by its path.
        field_selector = ",".join(filter(None, (f"metadata.name={target.name}", field_selector)))
    return Selection.parse(
        target.resource,
        namespace=target.namespace,
        label_selector=parameters.label_selector,
        field_selector=field_selector,
    )


def _check_says_kind(target: Target, value: object) -> None:
    """A new custom resource has to say what it is; for built-in kinds the path says enough."""
    if target.resource.is_custom and isinstance(value, dict):
        for name, shown in (("kind", "Kind"), ("apiVersion", "apiVersion")):
            if not value.get(name):
                what = f"the object provided is unrecognized (must be of type {target.resource.gvk.kind})"
                raise BadRequestError(f"{what}: Object '{shown}' is missing")


def _addressed(target: Target, value: object, *, needs_name: bool = False) -> Object:
    """The body with the namespace and the name of the path, which it may leave out but not contradict.

    A replacement has to say the name.
    """
    if not isinstance(value, dict):
        raise BadRequestError(
            f"the object provided is unrecognized (must be of type {target.resource.gvk.kind}): it is no mapping"
        )
    metadata = value.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        return value
    metadata = dict(metadata or {})
    if target.namespace:
        if metadata.get("namespace", target.namespace) not in (target.namespace, ""):
            raise failures.wrong_namespace()
        metadata["namespace"] = target.namespace
    if target.name:
        if needs_name and not metadata.get("name"):
            raise failures.missing_name(target.name)
        if metadata.get("name", target.name) not in (target.name, ""):
            raise failures.wrong_name(str(metadata["name"]), target.name)
        metadata["name"] = target.name
    return {**value, "metadata": metadata}


def _deletion(parameters: DeleteParameters, asked: _Asked, *, names_object: bool = True) -> Write:
    options: Object = {}
    if parameters.grace_seconds is not None:
        options["gracePeriodSeconds"] = parameters.grace_seconds
    if parameters.propagation is not None:
        options["propagationPolicy"] = parameters.propagation
    guards = {"uid": parameters.uid, "resourceVersion": parameters.resource_version}
    if any(guards.values()):
        options["preconditions"] = {name: value for name, value in guards.items() if value}
    return Write(
        dry_run=parameters.dry_run, user=asked.user, options=options, told=asked.warnings, names_object=names_object
    )


def _manager(parameters: WriteParameters, request: Request) -> str:
    """Who writes: as it says itself, else by the first word of its user agent."""
    return parameters.manager or request.headers.get("user-agent", "").partition("/")[0][:_MANAGER_LIMIT]
