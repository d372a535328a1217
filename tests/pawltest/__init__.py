"""What the Python tests share: starting real programs, talking to them, and breaking things.

    wait            wait_until(): the only way in which tests wait
    process         start, freeze and inspect processes; free_port()
    harness         Pawld and PawldCase: a real pawld for a test
    resp, web       clients for RESP and HTTP that show the exact bytes and headers
    tcp_proxy       a TCP proxy that delays, loses, repeats or cuts what passes
    tls_files       certificates
    record, torture an independent record of what pawld acknowledged, and the load that writes it
    disk_faults     disks that fail, fill up, hang and lose power
    postgres, mariadb, sqlite    a private database with the guard installed
    redis_server    the same for Redis
    etcd            a private etcd cluster, and Pawl's etcd client driven by lines of text
    frozen_worker   a worker frozen past its lease, for every database
    run_case, demo_case          what the tests of `pawl run` and `pawl demo` share
    node_clients    packages for Node.js

ctest runs every test with PYTHONPATH=tests and the paths of the programs in its environment.
To run one by hand, set them yourself, or let ctest print them with `ctest -V -R NAME`:

    export PYTHONPATH=$PWD/tests PAWLD=$PWD/build/bin/pawld PAWL=$PWD/build/bin/pawl
    /usr/bin/python3 tests/e2e/verbs_test.py Resp2VerbsTest.test_release_is_idempotent
"""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]  # of the repository
