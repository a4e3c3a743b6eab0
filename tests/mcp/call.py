"""Call the tools of a job that `tests.mcp.job_run` serves; it is copied to the folder of the jobs, and needs Python only.

Usage: python3 call.py JOB                         the situation, the request, and what the server says about itself
       python3 call.py JOB --tools [NAME...]       its tools: descriptions and arguments, of all or of some
       python3 call.py JOB TOOL ['{"name": 1}']    call a tool with JSON arguments ('-': read them from the input)
       python3 call.py JOB --answer 'TEXT'         the last words to the coach, when the job is done

Each call of a tool is counted in JOB.json, with the tokens that it has returned.
"""

from __future__ import annotations

import datetime
import json
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
BYTES_PER_TOKEN = 2
SITUATION = (
    "You work for a coach. Today is {today}. The coach agrees to whatever a tool asks to have confirmed, if it is what "
    "the request says: what you propose is decided within seconds, and get_proposal returns the result. Do what the "
    "request asks with as few calls as possible, then answer in a few sentences, with the figures and dates that matter."
)


def send(job: dict[str, Any], method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Send a request to the MCP endpoint, and return its result."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json", **job["headers"]}
    request = urllib.request.Request(job["url"], body, headers)  # loopback
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            answer: dict[str, Any] = json.load(response)
    except urllib.error.HTTPError as error:
        sys.exit(f"HTTP {error.code}: {error.read().decode()}")
    if "error" in answer:
        sys.exit(f"Error {answer['error']['code']}: {answer['error']['message']}")
    result: dict[str, Any] = answer["result"]
    return result


def call(job: dict[str, Any], tool: str, text: str) -> None:
    """Call a tool, print its text, and count the call."""
    arguments = json.loads(sys.stdin.read() if text == "-" else text)
    result = send(job, "tools/call", {"name": tool, "arguments": arguments})
    answer = result["content"][0]["text"]
    data = json.dumps(result.get("structuredContent", ""), ensure_ascii=False, separators=(",", ":"))
    used_file = FOLDER / f"{job['name']}.json"
    used = json.loads(used_file.read_text()) if used_file.exists() else {"calls": 0, "tokens": 0}
    used["calls"] += 1
    used["tokens"] += max(len(answer.encode()), len(data.encode())) // BYTES_PER_TOKEN
    used_file.write_text(json.dumps(used))
    print("ERROR: " * bool(result.get("isError")) + answer)
    print(f"({used['calls']} calls, {used['tokens']} tokens until now)")


def main() -> None:
    """Do what the arguments say."""
    jobs = {each["name"]: each for each in json.loads((FOLDER / "jobs.json").read_text())}
    name, *rest = sys.argv[1:] or [""]
    if name not in jobs:
        sys.exit(f"{__doc__}\nJobs: {', '.join(jobs)}")
    job = jobs[name]
    if not rest:
        about = {"name": "job", "version": "1"}
        started = send(job, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about})
        today = datetime.datetime.now(datetime.timezone.utc).date()  # noqa: UP017  # also Python 3.10
        print(SITUATION.format(today=today), f"Request: {job['request']}", started.get("instructions", ""), sep="\n\n")
    elif rest[0] == "--tools":
        for tool in send(job, "tools/list", {})["tools"]:
            if not rest[1:] or tool["name"] in rest[1:]:
                schema = json.dumps(tool["inputSchema"], ensure_ascii=False)
                print(f"{tool['name']}: {tool['description']}\n  arguments: {schema}")
    elif rest[0] == "--answer":
        (FOLDER / f"{name}.txt").write_text(rest[1])
    else:
        call(job, rest[0], rest[1] if rest[1:] else "{}")


if __name__ == "__main__":
    main()
