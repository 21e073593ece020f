"""The handler of API requests: it authenticates the user and passes the request on. It uses no network."""

from __future__ import annotations

import logging

from konverge.clock import Clock, Entropy
from konverge.errors import ApiError, KindNotServedError, ServerError
from konverge_cluster._internal.embedded import api_errors
from konverge_cluster._internal.embedded.access.access_filter import AccessFilter
from konverge_cluster._internal.embedded.access.access_reviews import AccessReviewHandler
from konverge_cluster._internal.embedded.access.authorization import AlwaysAllowAuthorizer
from konverge_cluster._internal.embedded.access.request_attributes import parse_attributes
from konverge_cluster._internal.embedded.access.service_account_tokens import ServiceAccountTokens
from konverge_cluster._internal.embedded.apiserver import ApiServer
from konverge_cluster._internal.embedded.audit_log import AuditEntry, AuditLog
from konverge_cluster._internal.embedded.limitations.unserved_resources import find_unserved
from konverge_cluster._internal.embedded.messages import (
    ServerRequest,
    ServerResponse,
    StreamingResponse,
    build_error_response,
)
from konverge_cluster._internal.embedded.non_resource import NonResourceHandler
from konverge_cluster._internal.embedded.parsed_request import ParsedRequest
from konverge_cluster._internal.embedded.query_parameters import is_true
from konverge_cluster._internal.embedded.read_requests import ReadHandler
from konverge_cluster._internal.embedded.routes import Verb, find_verb, parse_target
from konverge_cluster._internal.embedded.webhooks.pending_calls import (
    CallFunction,
    CallGenerator,
    WebhookCall,
    WebhookReply,
    run_with_calls,
    run_without_calls,
)
from konverge_cluster._internal.embedded.write_requests import WriteHandler

__all__ = ["RequestHandler"]

_log = logging.getLogger(__name__)


class RequestHandler:
    """Answers requests and records them in the audit log.

    Args:
        api: The API server.
        clock: The clock for the audit log, bookmarks and the ends of watches.
        entropy: The source of randomness for the ends of watches.
        audit: The log that receives an entry for each request.
        caller: Calls webhooks; None if webhooks cannot be called.
        gate: The filter for authentication and authorization; None to allow everything.
    """

    def __init__(
        self,
        api: ApiServer,
        *,
        clock: Clock,
        entropy: Entropy,
        audit: AuditLog,
        caller: CallFunction | None = None,
        gate: AccessFilter | None = None,
    ) -> None:
        self._resources = api.resources
        self._clock = clock
        self._audit = audit
        self._caller = caller or _fail_calls
        tokens = ServiceAccountTokens(api.storage, clock, entropy, {})
        self._gate = gate or AccessFilter(tokens, AlwaysAllowAuthorizer(), is_open=True)
        reviews = AccessReviewHandler(self._gate, clock)
        self._documents = NonResourceHandler(api.resources, reviews)
        self._reads = ReadHandler(api, clock, entropy, self._caller)
        self._writes = WriteHandler(api, clock, self._gate.authorizer, reviews, self._reads)

    async def handle_request(self, request: ServerRequest) -> ServerResponse | StreamingResponse:
        """Answer one request and call the necessary webhooks; every failure becomes a response too."""
        return await run_with_calls(self._handle(request), self._caller)

    def handle_without_webhooks(self, request: ServerRequest) -> ServerResponse | StreamingResponse:
        """Answer one request that needs no webhook.

        Raises:
            WebhookCallNeededError: A webhook must be called.
        """
        return run_without_calls(self._handle(request))

    def _handle(self, request: ServerRequest) -> CallGenerator[ServerResponse | StreamingResponse]:
        verb: str = request.method.lower()
        warnings: list[str] = []
        try:
            is_watch = is_true(request.query, "watch")
            user = self._gate.authenticate(request.headers, trusted=request.trusted)
            self._gate.check_access(
                user, parse_attributes(request.method, request.path, request.query, is_watch=is_watch)
            )
            target = parse_target(request.path, self._resources)
            if target is None:
                if unserved := find_unserved(request.path):
                    raise api_errors.new_unserved(unserved)
                answer: ServerResponse | StreamingResponse = self._documents.handle(request, user)
            else:
                matched_verb = find_verb(request.method, target, is_watch=is_watch)
                if matched_verb is None:
                    raise api_errors.new_method_not_allowed()
                verb = matched_verb
                answer = yield from self._dispatch(matched_verb, ParsedRequest(target, request, user, warnings))
        except ApiError as error:
            answer = build_error_response(error)
        except KindNotServedError:
            answer = build_error_response(api_errors.new_unknown_path())
        except Exception as error:  # noqa: BLE001 - a mistake of ours must be an answer, not a dead connection; it is logged
            _log.exception("%s %s failed", request.method, request.path)
            answer = build_error_response(
                ServerError(f"an error on the server has prevented the request: {type(error).__name__}")
            )
        if warnings and isinstance(answer, ServerResponse):
            answer = ServerResponse(answer.status, answer.body, answer.headers, tuple(dict.fromkeys(warnings)))
        agent = request.headers.get("user-agent", "")
        self._audit.record(AuditEntry(self._clock.now(), agent, verb, request.path, answer.status))
        return answer

    def close(self) -> None:
        """End all watches of this server."""
        self._reads.close()

    def _dispatch(self, verb: Verb, parsed: ParsedRequest) -> CallGenerator[ServerResponse | StreamingResponse]:
        reads, writes = self._reads, self._writes
        match verb:
            case "get":
                return (yield from reads.get(parsed))
            case "list":
                return (yield from reads.list_objects(parsed))
            case "watch":
                return reads.watch(parsed)
            case "create":
                return (yield from writes.create(parsed))
            case "update":
                return (yield from writes.update(parsed))
            case "patch":
                return (yield from writes.patch(parsed))
            case "delete":
                return (yield from writes.delete(parsed))
            case "deletecollection":
                return (yield from writes.delete_collection(parsed))


async def _fail_calls(calls: tuple[WebhookCall, ...]) -> tuple[WebhookReply, ...]:
    return tuple(WebhookReply(problem="this server cannot call webhooks") for _ in calls)
