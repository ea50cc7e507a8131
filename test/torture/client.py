"""The client of torture's pmcd.

client.py live PORT SPEC: fetches the watched files' metrics again and again, and does what standard input says, a line of
JSON each: {"names", "items", "tag", "mark", "insts"} of a file that must be there, {"gone": name}, {"quit": true}.
client.py archive PATH SPEC: checks what pmlogger has logged.

SPEC is a file with a list of {"names", "items", "tag", "insts", "live"}. What is found is written as lines of JSON:
{"wrong"}, {"missed"} or {"blinked", "file", "at"} with a text ("order" if it is about the last line of input), {"late"} with
seconds, {"done"} after each line of input, {"end", "fetches", "slowest"}.
"""
import ctypes
import json
import random
import select
import sys
import time

import cpmapi
from pcp import pmapi

KINDS = [cpmapi.PM_TYPE_U64, cpmapi.PM_TYPE_64, cpmapi.PM_TYPE_U32, cpmapi.PM_TYPE_32, cpmapi.PM_TYPE_DOUBLE,
         cpmapi.PM_TYPE_FLOAT, cpmapi.PM_TYPE_STRING]
BITS = {cpmapi.PM_TYPE_DOUBLE: 21, cpmapi.PM_TYPE_U32: 16, cpmapi.PM_TYPE_32: 16, cpmapi.PM_TYPE_FLOAT: 8}
EACH_FROM = 500
LATE = 5


def say(**what):
    print(json.dumps(what), flush=True)


def identity(tag, item, inst):
    return tag << 16 | item << 6 | (inst + 1) & 63


def short(ident):
    return (ident * 2654435761 & 0xffffffff) >> 16


def mark(kind, ident, atom):
    """The mark of a value, or None if it is not that metric's."""
    if kind == cpmapi.PM_TYPE_STRING:
        words = atom.cp.decode("latin1").split()
        return int(words[1]) if len(words) == 2 and words[0] == "%08x" % ident else None
    if kind == cpmapi.PM_TYPE_DOUBLE:
        number, ident = int(atom.d), ident
    elif kind == cpmapi.PM_TYPE_FLOAT:
        number, ident = int(atom.f), short(ident)
    elif kind in (cpmapi.PM_TYPE_U32, cpmapi.PM_TYPE_32):
        number, ident = atom.ul, short(ident)
    else:
        number = atom.ull
    bits = BITS.get(kind, 32)
    return number & (1 << bits) - 1 if number >> bits == ident else None


class File:
    """A watched file: checks values from one answer to the next."""

    def __init__(self, ctx, spec):
        self.ctx, self.spec, self.last = ctx, spec, {}
        self.pmids = ctx.pmLookupName(spec["names"])

    def values(self, result, where):
        """All values of an answer as (item, instance, mark, bits), and what is wrong with them. where tells the places of
        PMIDs in it."""
        out = []
        for i, item in enumerate(self.spec["items"]):
            at = where[self.pmids[i]]
            n = result.contents.get_numval(at)
            want = len(self.spec["insts"]) if item >= EACH_FROM else 1
            kind = KINDS[item % 7]
            if n < 0 and not self.spec["live"]:
                say(blinked="%s: %s" % (self.spec["names"][i], pmapi.pmErr(n).message()), file=self.spec["names"][0],
                    at=float(result.contents.timestamp))
                return out, None
            if n < 0:
                return out, "%s: %s" % (self.spec["names"][i], pmapi.pmErr(n).message())
            if n != want and (n > 0 or self.spec["live"]):
                return out, "%s has %d values, not %d" % (self.spec["names"][i], n, want)
            for j in range(n):
                inst = result.contents.get_inst(at, j)
                atom = self.ctx.pmExtractValue(result.contents.get_valfmt(at), result.contents.get_vlist(at, j), kind, kind)
                got = mark(kind, identity(self.spec["tag"], item, inst), atom)
                if got is None:
                    return out, "%s instance %d has another's value %s" % (self.spec["names"][i], inst, atom.dref(kind))
                out.append((item, inst, got, BITS.get(kind, 32)))
        return out, None

    def check(self, result, where):
        values, problem = self.values(result, where)
        if problem:
            return problem
        for item, inst, got, bits in values:
            if not self.spec["live"]:
                key = bits
            else:
                key = (item, inst)
            if bits == 32 and got < self.last.get(key, 0):
                return "%s item %d instance %d was %d and is %d" % (self.spec["names"][0], item, inst, self.last[key], got)
            self.last[key] = got
        if not self.spec["live"]:
            for _, _, got, bits in values:
                common = (1 << min(bits, values[0][3])) - 1
                if got & common != values[0][2] & common:
                    return "%s: one answer has %s" % (self.spec["names"][0], [v[2] for v in values])
        return None


def places(result):
    return {result.contents.get_pmid(i): i for i in range(result.contents.numpmid)}


class Client:
    def __init__(self, ctx):
        self.ctx, self.fetches, self.slowest = ctx, 0, 0.0

    def timed(self, call, *args):
        start = time.monotonic()
        try:
            return call(*args)
        finally:
            took = time.monotonic() - start
            self.slowest = max(self.slowest, took)
            if took > LATE:
                say(late=took)

    def watch(self, files):
        pmids = [p for f in files for p in f.pmids]
        result = self.timed(self.ctx.pmFetch, (ctypes.c_uint * len(pmids))(*pmids))
        self.fetches += 1
        self.check(files, result)
        self.ctx.pmFreeResult(result)

    def check(self, files, result):
        where = places(result)
        for f in files:
            problem = f.check(result, where)
            if problem:
                say(wrong=problem)

    def do(self, order):
        if "gone" in order:
            try:
                pmids = self.timed(self.ctx.pmLookupName, [order["gone"]])
                say(wrong="%s is gone and has the PMID %s" % (order["gone"], pmids[0]), order=True)
            except pmapi.pmErr as err:
                if err.errno() != cpmapi.PM_ERR_NAME:
                    say(wrong="%s: %s" % (order["gone"], err.message()), order=True)
            return
        order["live"] = True
        try:
            f = self.timed(File, self.ctx, order)
        except pmapi.pmErr as err:
            say(missed="%s: %s" % (order["names"], err.message()), order=True)
            return
        result = self.timed(self.ctx.pmFetch, f.pmids)
        self.fetches += 1
        values, problem = f.values(result, places(result))
        self.ctx.pmFreeResult(result)
        if problem:
            say(missed="%s (PMIDs %s)" % (problem, [pmapi.pmContext.pmIDStr(p) for p in f.pmids]), order=True)
        for item, inst, got, bits in values:
            if got != order["mark"] & (1 << bits) - 1:
                say(wrong="%s: item %d instance %d is from contents %d, not %d" % (order["names"][0], item, inst, got,
                                                                                   order["mark"]), order=True)


def live(port, specs):
    client = Client(pmapi.pmContext(cpmapi.PM_CONTEXT_HOST, "127.0.0.1:" + port))
    files = [File(client.ctx, s) for s in specs]
    say(done=True)
    while True:
        if select.select([sys.stdin], [], [], 0.005)[0]:
            line = sys.stdin.readline()
            if not line or "quit" in json.loads(line):
                break
            client.do(json.loads(line))
            say(done=True)
        else:
            client.watch(files if client.fetches % 10 == 0 else [random.choice(files)])
    say(end=True, fetches=client.fetches, slowest=client.slowest)


def archive(path, specs):
    client = Client(pmapi.pmContext(cpmapi.PM_CONTEXT_ARCHIVE, path))
    files = [File(client.ctx, s) for s in specs]
    try:
        while True:
            result = client.ctx.pmFetchArchive()
            there = places(result)
            if not there:
                say(wrong="the archive has a gap")
            elif files[0].pmids[0] in there:
                client.fetches += 1
                client.check(files, result)
            client.ctx.pmFreeResult(result)
    except pmapi.pmErr as err:
        if err.errno() != cpmapi.PM_ERR_EOL:
            say(wrong="archive: " + err.message())
    say(end=True, fetches=client.fetches, slowest=0)


def main():
    with open(sys.argv[3], encoding="utf-8") as f:
        specs = json.load(f)
    try:
        {"live": live, "archive": archive}[sys.argv[1]](sys.argv[2], specs)
    except pmapi.pmErr as err:
        say(wrong="the client ends: " + err.message())
        raise


main()
