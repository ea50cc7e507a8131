#!/usr/bin/python3
"""A bread shop that tells of its work through an MMV file, with PCP's mmv module: one of the two programs of the demo,
and of the tests. Started with --step it sells once per line on standard input and ends with it; otherwise twice a
second until SIGINT or SIGTERM.
"""
# PCP's packages install their module for the system's Python, not for another one that may come first in PATH.
import signal
import sys
import time

import cmmv
import cpmapi
from pcp import mmv, pmapi

BREADS = 61    # serial of the indom
COUNT = pmapi.pmUnits(0, 0, 1, 0, 0, cpmapi.PM_COUNT_ONE)
NONE = pmapi.pmUnits(0, 0, 0, 0, 0, 0)


def metric(name, item, kind, semantics, units=NONE, indom=0, short='', long=''):
    m = mmv.mmv_metric(name, item, kind, semantics, units, indom, short)
    # Not every release of the module takes these from the constructor.
    m.semantics, m.dimension, m.helptext = semantics, units, long.encode() or None
    return m


def publish():
    breads = mmv.mmv_indom(BREADS, 'Breads')
    breads.helptext = b'The kinds of bread on sale'
    breads.set_instances([mmv.mmv_instance(0, 'rye'), mmv.mmv_instance(1, 'wheat'), mmv.mmv_instance(2, 'spelt')])
    shop = mmv.MemoryMappedValues('shop', cmmv.MMV_FLAG_PROCESS, 42)
    shop.add_indoms([breads])
    shop.add_metrics([
        metric('sales', 1, cmmv.MMV_TYPE_U32, cmmv.MMV_SEM_COUNTER, COUNT, BREADS, 'Breads sold, by kind',
               'Breads that went over the counter since the shop opened.'),
        metric('queue', 2, cmmv.MMV_TYPE_I32, cmmv.MMV_SEM_INSTANT, short='Customers waiting'),
        metric('price', 3, cmmv.MMV_TYPE_FLOAT, cmmv.MMV_SEM_DISCRETE, indom=BREADS, short='Price of a bread'),
        metric('till.state', 4, cmmv.MMV_TYPE_STRING, cmmv.MMV_SEM_DISCRETE, short='What the till does'),
    ])
    shop.start()
    for kind, price in (('rye', 3.5), ('wheat', 3.25), ('spelt', 4)):
        shop.lookup_set('price', kind, price)
    shop.lookup_set_string('till.state', None, 'open')
    return shop


def sell(shop, n):
    shop.lookup_inc('sales', ('rye', 'wheat', 'spelt')[n % 3])
    shop.lookup_set('queue', None, n % 5)
    shop.lookup_set_string('till.state', None, 'counting' if n % 7 == 0 else 'open')


def clock():
    while True:
        time.sleep(.5)
        yield


def main():
    by_hand = sys.argv[1:] == ['--step']
    shop = publish()
    print('ready', flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for n, _ in enumerate(sys.stdin if by_hand else clock(), 1):
            sell(shop, n)
            if by_hand:
                print(n, flush=True)
    except KeyboardInterrupt:
        pass
    shop.stop()    # removes the file


main()
