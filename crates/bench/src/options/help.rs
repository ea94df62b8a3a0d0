//! What `causeway bench --help` prints.

/// The text.
pub const HELP: &str = "\
Measure a volume with diskspd's options.

Usage: causeway bench [OPTIONS] TARGET...
       causeway bench sweep [LISTS OF OPTIONS] TARGET...
       causeway bench --compare A.json B.json

TARGET is memory:SIZE, a file, a block device, or iscsi://HOST[:PORT][,HOST...]/IQN/LUN.
Values stand right behind their letter: -b64K -t2 -o32. Sizes take K, M, G, T; in -B, -r, -s, -T also b (blocks).

What an operation is
  -b<size>            bytes of an operation [default: 64K]
  -r[align]           random offsets, multiples of align [default: of -b]
  -rs<percent>        so many of a hundred go to a random place, the others on from the last one
  -rdpct<io/target:...>, -rdabs<io/size:...>   shares of operations for parts of the target: -rdpct90/10:10/90
  -s[i][stride]       sequential; with i all threads share one position [the default: -s of -b]
  -T<size>            bytes between the starts of threads [default: 0]
  -p                  with -s: outstanding operations of a thread have the same offset
  -w<percent>         writes [default: 0]
  -B<base>[:<size>], -f<size>   use only this part of the target
  -c<size>            make the files, of this size, and fill them

How many, how long
  -t<n>               threads for each target [default: 1]
  -o<n>               outstanding operations of each thread on each target [default: 2]
  -F<n>, -O<n>        threads in all, each on all targets; outstanding operations of each
  -d<s> -W<s> -C<s>   measured time, warm-up before it, cool-down after it [default: 10, 5, 0]
  -g<n>[i]            at most so many bytes a millisecond, or operations a second (i), of each thread on each target
  -i<n> -j<ms>        bursts of n operations, and the rest between them

What is written
  -S[uwh]             -Sw: every write is stable before it counts (FUA); -Su: past the page cache, as always; -Sh: both
  -h                  diskspd's old word for -Sh, beside other options; alone it asks for this help
  -Z, -Zr, -Z<size>[,<file>]   zeroes; random bytes, new each time; parts of so many random bytes, or of a file
  --compress <percent>, --dedupe <percent>   pieces of 4096 bytes, each so far zeroes; so many of them one of eight that come again
  -z[seed]            seed of all randomness [default: 0]; -z alone takes another one each time
  --verify            writes carry stamps, reads are checked, and at the end all that was written is read back
  --destroy           overwrite a file, device or LUN that is not a bench LUN, and mark it as one

  --fill              write all that is used of the target once, before the run

What is reported
  -R<form>            text, xml, json, html, svg or csv [default: text]
  -D[ms]              the series of operations by intervals [default: 1000]; -L: latency (always measured)
  --record-tcpinfo    with -Rjson and iscsi:// targets: round trip and retransmissions of each path, each second
  --output FILE       where the result goes [default: standard output]
  --quiet             no live progress
  --deadline SECONDS  how long after the end an operation may stay away before it counts as lost [default: 30]
  --cores N           use so many processors [default: all]
  --barrier           print `ready`, and begin when a line comes in at standard input
  --driven            for programs: a JSON line a second, then one with the result; low priority; stops when standard input ends

Ready-made
  --profile anvil             the rows of a published table: sequential 4 MiB, 4K, 4K QD4, 4K QD16, 32K, 128K
  --profile mpio              sequential 4 MiB, read then write, beside the published multipath figures
  --profile jetstress-like    random 32K database reads and writes, sequential log writes; passes at 20 ms and 10 ms
  --autotune                  with jetstress-like: raises concurrency as long as it passes
  --control FILE              a result of the same profile (-Rjson) to show deviations from
  --compare A.json B.json     two results of the same workload beside each other

For iscsi:// targets
  --from IP|NIC (repeatable), --policy NAME[:ARG], --plan (the default), --no-plan, --no-discover, --facts FILE, --chap USER:FILE,
  --mutual-chap USER:FILE, --initiator-name IQN, --digests MODE, --write-failover MODE, --sharing WHO,
  --no-path-timeout SECONDS, --initiator-state DIR: `causeway attach --help` says what each of them means

Options that mean something on Windows only (-a -e -I -l -n -N -P -x -y) are accepted with a warning.
Exit codes: 0 done, 1 failed (errors, or data that is wrong), 2 usage, 5 refused because data would be lost.
";
