"""The runtime of Python functions: loads the handler once, then answers one event after the other.

Descriptor 4 gives events, descriptor 3 takes answers, the standard streams are the log. What errors look like is what
AWS's own runtime answers (Lambda developer guide, "Python function errors").
"""

import base64
import decimal
import importlib
import json
import logging
import os
import queue
import re
import signal
import sys
import threading
import time
import traceback
import uuid

EVENTS, ANSWERS = 4, 3
ROOT = os.environ["LAMBDA_TASK_ROOT"]


class Refused(Exception):
    """An error of the runtime, not of the handler."""

    def __init__(self, kind, message, trace=()):
        super().__init__(message)
        self.kind, self.trace = kind, list(trace)


class Bare:
    """An object with these attributes."""

    def __init__(self, **members):
        self.__dict__.update(members)


class Context:
    """What a handler gets beside the event."""

    def __init__(self, head):
        variables = os.environ
        self.aws_request_id = head["id"]
        self.invoked_function_arn = head["arn"]
        self.function_name = variables["AWS_LAMBDA_FUNCTION_NAME"]
        self.function_version = variables["AWS_LAMBDA_FUNCTION_VERSION"]
        self.memory_limit_in_mb = variables["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"]
        self.log_group_name = variables["AWS_LAMBDA_LOG_GROUP_NAME"]
        self.log_stream_name = variables["AWS_LAMBDA_LOG_STREAM_NAME"]
        self.identity = Bare(cognito_identity_id=None, cognito_identity_pool_id=None)
        self.client_context = client_context(head.get("client"))
        self._ends = time.monotonic() + head["milliseconds"] / 1000

    def get_remaining_time_in_millis(self):
        """Milliseconds until the function's timeout."""
        return max(0, int((self._ends - time.monotonic()) * 1000))

    def log(self, message):
        """Writes to the log, as it is."""
        sys.stdout.write(str(message))


def client_context(text):
    """The caller's `ClientContext`, if there is one."""
    if not text:
        return None
    given = json.loads(base64.b64decode(text))
    client = given.get("client")
    return Bare(
        custom=given.get("custom"),
        env=given.get("env"),
        client=Bare(**client) if isinstance(client, dict) else None,
    )


def read_events(into):
    """Reads events in a thread of its own, so that the end of the account ends a busy handler too."""
    data = b""

    def more():
        nonlocal data
        part = os.read(EVENTS, 1 << 16)
        if not part:
            # Nobody is there any more: everything that this environment started ends with it.
            os.kill(0, signal.SIGKILL)
        data += part

    while True:
        while b"\n" not in data:
            more()
        line, data = data.split(b"\n", 1)
        head = json.loads(line)
        while len(data) < head["length"]:
            more()
        event, data = data[: head["length"]], data[head["length"] :]
        into.put((head, event))


def write(descriptor, data):
    """Writes all of it."""
    while data:
        data = data[os.write(descriptor, data) :]


def answer(kind, body):
    """Answers an event, or says how loading the handler went."""
    write(ANSWERS, b"%s %d\n" % (kind.encode(), len(body)) + body)


def failure(message, kind, trace, request=""):
    """The payload of an error."""
    told = {"errorMessage": message, "errorType": kind, "requestId": request, "stackTrace": trace}
    print(f"[ERROR] {kind}: {message}" if message else f"[ERROR] {kind}", flush=True)
    if trace:
        print("Traceback (most recent call last):\n" + "".join(trace), end="", flush=True)
    return json.dumps(told).encode()


def load():
    """The handler that the function's configuration names."""
    named = os.environ["_HANDLER"]
    module, dot, name = named.rpartition(".")
    if not dot or not module:
        why = f"Bad handler '{named}': not enough values to unpack (expected 2, got 1)"
        raise Refused("Runtime.MalformedHandlerName", why)
    try:
        loaded = importlib.import_module(module.replace("/", "."))
    except ImportError as error:
        why = f"Unable to import module '{module}': {error}"
        raise Refused("Runtime.ImportModuleError", why) from error
    except SyntaxError as error:
        trace = [f'  File "{error.filename}" Line {error.lineno}\n    {error.text}']
        why = f"Syntax error in module '{module}': {error}"
        raise Refused("Runtime.UserCodeSyntaxError", why, trace) from error
    try:
        return getattr(loaded, name)
    except AttributeError as error:
        why = f"Handler '{name}' missing on module '{module}'"
        raise Refused("Runtime.HandlerNotFound", why) from error


def marshalled(response):
    """The bytes of an answer: a handler's bytes as they are, everything else as JSON."""
    if isinstance(response, bytes):
        return response
    mark = uuid.uuid4().hex

    def other(value):
        if isinstance(value, bytes):
            return value.decode()
        if isinstance(value, decimal.Decimal):
            return mark + str(value)
        raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")

    try:
        text = json.dumps(response, default=other, ensure_ascii=False)
        return re.sub(f'"{mark}([^"]*)"', r"\1", text).encode()
    except Exception as error:
        raise Refused("Runtime.MarshalError", f"Unable to marshal response: {error}") from error


def trace_of(error):
    """The frames of an exception, without those of this file."""
    frames = [tuple(frame) for frame in traceback.extract_tb(error.__traceback__)]
    while frames and frames[0][0] in (__file__, importlib.__file__, "<frozen importlib._bootstrap>"):
        frames.pop(0)
    return traceback.format_list(frames)


def handle(handler, head, event):
    """Answers one event."""
    Named.request = head["id"]
    try:
        try:
            event = json.loads(event)
        except ValueError as error:
            raise Refused("Runtime.UnmarshalError", f"Unable to unmarshal input: {error}") from error
        kind, body = "result", marshalled(handler(event, Context(head)))
    except Refused as error:
        kind, body = "error", failure(str(error), error.kind, error.trace, head["id"])
    except Exception as error:
        body = failure(str(error), type(error).__name__, trace_of(error), head["id"])
        kind = "error"
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    write(2, b"\0end %s\n" % head["id"].encode())
    answer(kind, body)


class Named(logging.Filter):
    """Puts the id of the request into what is logged."""

    request = ""

    def filter(self, record):
        record.aws_request_id = self.request
        return True


def set_up_logging():
    """Logs as Lambda's runtime does."""
    lines = logging.StreamHandler(sys.stdout)
    form = "[%(levelname)s]\t%(asctime)s.%(msecs)03dZ\t%(aws_request_id)s\t%(message)s"
    lines.setFormatter(logging.Formatter(form, "%Y-%m-%dT%H:%M:%S"))
    lines.formatter.converter = time.gmtime
    lines.addFilter(Named())
    logging.getLogger().addHandler(lines)


def main():
    """Loads, then answers for ever."""
    for descriptor in (EVENTS, ANSWERS):
        os.set_inheritable(descriptor, False)
    sys.path[0] = ROOT
    set_up_logging()
    events = queue.SimpleQueue()
    threading.Thread(target=read_events, args=(events,), daemon=True).start()
    try:
        handler = load()
    except Refused as error:
        answer("refused", failure(str(error), error.kind, error.trace))
        sys.exit(1)
    except Exception as error:
        answer("refused", failure(str(error), type(error).__name__, trace_of(error)))
        sys.exit(1)
    answer("ready", b"")
    while True:
        handle(handler, *events.get())


main()
