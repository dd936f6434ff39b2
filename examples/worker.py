#!/usr/bin/env python3
"""Carries out steps that dlo.toml leaves to a program (runner = "worker").

Needs Python 3.9 or newer and nothing else. Settings come from the environment:

    DLO_URL     where the desk is              (http://127.0.0.1:8080)
    DLO_TOKEN   a token of the scope "work"    (dlo token create mailbox --scope work)
    DLO_TYPE    the operation type             (send-letter)
    SINK_URL    what this example calls        (http://127.0.0.1:9000/letters)

Four rules keep a program like this honest:

1. Send the claim's "key" along, so that the other side recognises a repeat. It is the same on
   every try. A program may die at any moment, and then somebody does its step again.
2. Say that you are still at it (heartbeat), well before the lease is over.
3. Say what became of it: complete, fail, or unknown. Where that word is lost, say it again: the
   same word a second time is answered like the first.
4. When told 409 (claim lost), stop working on that step: somebody else may have it.
"""

import http.client
import json
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request

DLO_URL = os.environ.get("DLO_URL", "http://127.0.0.1:8080").rstrip("/")
DLO_TOKEN = os.environ.get("DLO_TOKEN", "")
DLO_TYPE = os.environ.get("DLO_TYPE", "send-letter")
SINK_URL = os.environ.get("SINK_URL", "http://127.0.0.1:9000/letters")

# Steps taken at once, how long they are ours without a word, and how long to wait for some.
LIMIT, LEASE_SECONDS, WAIT_SECONDS = 50, 5, 5

stopping = threading.Event()


def call(url, body, headers, timeout):
    """Posts JSON; the status and the answer. Raises OSError when there is none."""
    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method="POST")
    request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, json.loads(answer.read() or b"{}")
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read(2_000).decode(errors="replace")
    except (http.client.HTTPException, ValueError) as broken:
        raise OSError(f"the answer cannot be read: {broken!r}") from broken


def api(path, body, timeout=10):
    """One call of the API."""
    return call(DLO_URL + "/api/v1" + path, body, {"Authorization": "Bearer " + DLO_TOKEN}, timeout)


def settle(claim, word, **facts):
    """Says what became of a step, and says it again until that is heard or cannot count any more."""
    wait = 0.1
    while True:
        try:
            status, answer = api(f"/claims/{claim['id']}/{word}", {"fence": claim["fence"], **facts})
            if status < 500 and status != 429:
                # 200 also for a word that was heard before; 409 when the claim was lost: our word is
                # then kept as evidence, and there is nothing left to do here.
                if status != 200:
                    print(f"{claim['id']}: {word} was answered {status}: {answer}", file=sys.stderr)
                return
        except OSError as error:
            print(f"{claim['id']}: {word} was not heard yet: {error}", file=sys.stderr)
        time.sleep(wait)
        wait = min(wait * 2, 5)


def keep(claims, over):
    """Runs in a thread of its own: says for every step in `claims` that we are still at it."""
    while not over.wait(LEASE_SECONDS / 3):
        for claim in list(claims.values()):
            try:
                beat = {"fence": claim["fence"], "lease": f"{LEASE_SECONDS}s"}
                status, _ = api(f"/claims/{claim['id']}/heartbeat", beat)
            except OSError:
                continue  # The next beat may get through before the lease is over.
            if status in (404, 409):
                claims.pop(claim["id"], None)  # Lost: it must not be begun any more.


def carry_out(claim):
    """The work itself. Here: one call to something that recognises a repeat by its key."""
    try:
        status, answer = call(SINK_URL, claim["body"], {"Idempotency-Key": claim["key"]}, timeout=3)
    except OSError as error:
        if isinstance(getattr(error, "reason", None), ConnectionRefusedError):
            return settle(claim, "fail", error=str(error), retry=True)  # Nothing can have happened.
        return settle(claim, "unknown", error=str(error))  # It may have happened.
    if 200 <= status < 300:
        return settle(claim, "complete", result=answer, reference=answer.get("id"))
    if 400 <= status < 500:
        return settle(claim, "fail", error=f"{status} {answer}", retry=status == 429)
    return settle(claim, "unknown", error=f"{status} {answer}")


def work():
    """Takes steps and carries them out until told to stop."""
    while not stopping.is_set():
        wanted = {"types": [DLO_TYPE], "limit": LIMIT, "lease": f"{LEASE_SECONDS}s", "wait": f"{WAIT_SECONDS}s"}
        try:
            status, answer = api("/claims", wanted, timeout=WAIT_SECONDS + 10)
        except OSError as error:
            print(f"no work for now: {error}", file=sys.stderr)
            stopping.wait(1)
            continue
        if status != 200:
            if status in (401, 403, 422):
                sys.exit(f"dlo refuses: {answer}")
            stopping.wait(1)
            continue
        claims = {claim["id"]: claim for claim in answer["claims"]}
        over = threading.Event()
        beats = threading.Thread(target=keep, args=(claims, over), daemon=True)
        beats.start()
        try:
            for claim in answer["claims"]:
                if claim["id"] not in claims:
                    continue
                if stopping.is_set():
                    # Not begun: it goes back at once instead of when its lease is over.
                    settle(claim, "fail", error="the worker was stopped", retry=True)
                else:
                    carry_out(claim)
                claims.pop(claim["id"], None)
        finally:
            over.set()
            beats.join()


if __name__ == "__main__":
    for name in (signal.SIGTERM, signal.SIGINT):
        # Ends the step at hand, gives the others back and leaves.
        signal.signal(name, lambda *_: stopping.set())
    if not DLO_TOKEN:
        sys.exit("DLO_TOKEN is not set: make one with `dlo token create mailbox --scope work`")
    print("working", flush=True)
    work()
