import { describe, expect, it } from 'vitest';
import type { Activity, LunActivity } from '../api/types.ts';
import { quantile, since, sum } from './histogram.ts';
import { link, pause } from './link.ts';
import { between, latencies, ofWhole, others } from './rates.ts';
import { means, Ring } from './ring.ts';

const op = (ops: number, bytes: number, buckets: [number, number][] = []) => ({
  ops,
  bytes,
  latency: { total: { count: buckets.reduce((n, b) => n + b[1], 0), us_sum: ops * 100, buckets } },
});
const lun = (name: string, read: ReturnType<typeof op>, write = op(0, 0)): LunActivity => ({
  name, online: true, in_flight: 2, read, write, other_ops: 0,
});
const at = (at_us: number, luns: LunActivity[], started = 'a'): Activity => ({
  node: 'n', started, at_us, cores: [{ core: 0, busy_us: at_us / 4, load_permille: 0, connections: 0, disk_engine: '' }],
  luns, sessions: [],
});

describe('rates', () => {
  it('are of the time that the daemon counted, not of the page', () => {
    const moment = between(
      at(1_000_000, [lun('a', op(100, 4096))]),
      at(3_000_000, [lun('a', op(300, 8192, [[64, 198], [4096, 2]])), lun('b', op(50, 0))]),
    );
    expect(moment?.luns.get('a')).toMatchObject({ readIops: 100, readBytes: 2048, readP50: 64, readP99: 64 });
    expect(moment?.node.readIops).toBe(125);
    expect(moment?.busy).toBe(0.25);
  });
  it('of LUNs that did nothing cost next to nothing: 10,000 of them', () => {
    const many = Array.from({ length: 10_000 }, (_, i) => ({ ...lun(`lun-${i}`, op(i, 0)), in_flight: 0 }));
    const after = [...many];
    after[7] = { ...lun('lun-7', op(17, 0)), in_flight: 2 };
    const moment = between(at(0, many), at(1_000_000, after));
    expect([moment?.node.readIops, moment?.node.inFlight, moment?.luns.size]).toEqual([10, 2, 10_000]);
    expect(moment?.luns.get('lun-8')).toBe(moment?.luns.get('lun-9'));
    expect([...(moment?.took.keys() ?? [])]).toEqual([]);
  });
  it('of a session have the p99 of what it did since, and none where it did nothing', () => {
    const session = (id: number, ...buckets: [number, number][]) => ({ id, latency: op(0, 0, buckets).latency.total }) as never;
    const p99 = latencies([session(1, [64, 500]), session(2, [64, 5])], [session(1, [64, 550], [8192, 50]), session(2, [64, 5]), session(3, [128, 1])]);
    expect([...p99]).toEqual([[1, 8192], [3, 128]]);
  });
  it('of a LUN that stands elsewhere by now are its own', () => {
    const [a, c] = [lun('a', op(1, 0)), lun('c', op(100, 0))];
    const moment = between(at(0, [a, c]), at(1_000_000, [a, lun('b', op(5, 0)), lun('c', op(130, 0))]));
    expect([moment?.luns.get('b')?.readIops, moment?.luns.get('c')?.readIops]).toEqual([5, 30]);
  });
  it('make the list old where a LUN came, went or changed its state, and a row by what it does', () => {
    const [a, b] = [lun('a', op(1, 0)), lun('b', op(1, 0))];
    const old = (luns: LunActivity[]) => others(at(0, [a, b]), at(1, luns));
    expect(old([a, b])).toEqual({ sessions: false, luns: false, moved: [] });
    expect(old([lun('a', op(9, 0)), b])).toEqual({ sessions: false, luns: false, moved: ['a'] });
    for (const luns of [[a], [a, lun('c', op(1, 0))], [a, { ...b, online: !b.online }]]) expect(old(luns).luns).toBe(true);
  });
  it('of the node as a whole are those of its own document', () => {
    const whole = (at_us: number, ops: number, started = 'a') => ({
      started, at_us, cores: at(at_us, []).cores, in_flight: 3, read: { ops, bytes: ops * 512, p50_us: 64, p99_us: 128 }, write: { ops: 0, bytes: 0 },
    });
    const rates = ofWhole(whole(0, 100), whole(2_000_000, 300));
    expect(rates?.node).toMatchObject({ readIops: 100, readBytes: 51_200, writeIops: 0, readP50: 64, readP99: 128, writeP99: undefined, inFlight: 3 });
    expect(rates?.busy).toBe(0.25);
    expect(ofWhole(whole(0, 300), whole(1_000_000, 100))?.node.readIops).toBe(0);
    expect(ofWhole(whole(0, 1), whole(1, 2, 'b'))).toBeUndefined();
  });
  it('are not made over a restart of the daemon', () => {
    expect(between(at(5, [], 'a'), at(9, [], 'b'))).toBeUndefined();
    expect(between(at(5, []), at(5, []))).toBeUndefined();
  });
  it('of another LUN of the same name count from zero', () => {
    const moment = between(at(0, [lun('a', op(1000, 0))]), at(1_000_000, [lun('a', op(10, 0))]));
    expect(moment?.luns.get('a')?.readIops).toBe(10);
  });
});

describe('histograms', () => {
  it('give what was counted since', () => {
    const before = { count: 3, us_sum: 30, buckets: [[8, 2], [16, 1]] as [number, number][] };
    const after = { count: 6, us_sum: 90, buckets: [[8, 2], [16, 2], [64, 2]] as [number, number][] };
    expect(since(after, before)).toEqual({ count: 3, us_sum: 60, buckets: [[16, 1], [64, 2]] });
    expect(since(before, after)).toEqual(before);
  });
  it('add up, and have quantiles', () => {
    const all = sum([
      { count: 1, us_sum: 1, buckets: [[64, 1]] },
      { count: 99, us_sum: 9, buckets: [[8, 99]] },
    ]);
    expect(quantile(all, 0.5)).toBe(8);
    expect(quantile(all, 0.99)).toBe(8);
    expect(quantile(all, 1)).toBe(64);
    expect(quantile(sum([]), 0.5)).toBeUndefined();
  });
});

describe('a ring', () => {
  it('says since when anything is known', () => {
    const ring = new Ring(['x', 'y'], 3);
    expect(ring.since()).toBeUndefined();
    ring.push(1, [undefined, undefined]);
    expect(ring.since()).toBeUndefined();
    ring.push(2, [undefined, 0]);
    ring.push(3, [1, undefined]);
    expect(ring.since()).toBe(2);
    ring.push(4, [undefined, undefined]);
    ring.push(5, [undefined, undefined]);
    expect(ring.since()).toBe(3);
  });
  it('forgets the oldest and keeps gaps', () => {
    expect(new Ring(['x'], 3).read(['z'])).toEqual([[], []]);
    const one = new Ring(['x'], 3);
    one.push(7, [1]);
    expect(one.read(['z', 'x'])).toEqual([[7], [null], [1]]);
    const ring = new Ring(['x', 'y'], 3);
    for (let i = 1; i <= 5; i++) ring.push(i, [i * 10, i === 4 ? undefined : 0]);
    expect(ring.read(['x', 'y'])).toEqual([[3, 4, 5], [30, 40, 50], [0, null, 0]]);
    expect(ring.read(['x'], 5)).toEqual([[5], [50]]);
  });
});

describe('when anything was known', () => {
  it('is each row for so long, with the holes between them', () => {
    const ring = new Ring(['x', 'y'], 9);
    for (const [time, x] of [[10, 1], [13, 0], [16, undefined], [19, undefined], [22, 5], [30, 5]] as const) ring.push(time, [x, undefined]);
    expect(ring.known(3)).toEqual([[10, 16], [22, 25], [30, 33]]);
    expect(new Ring(['x'], 3).known(3)).toEqual([]);
  });
});

describe('a ring that is filled live', () => {
  const ring = (size: number, rows: [number, number | undefined][]) => {
    const made = new Ring(['x'], size);
    for (const [time, x] of rows) made.push(time, [x]);
    return made;
  };
  it('begins with what was recorded before its oldest, gaps included', () => {
    const live = ring(5, [[30, 3], [31, 4]]);
    live.recall(ring(9, [[27, 1], [28, undefined], [29, 2], [30, 99], [31, 99]]));
    expect(live.read(['x'])).toEqual([[27, 28, 29, 30, 31], [1, null, 2, 3, 4]]);
    live.push(32, [5]);
    expect(live.read(['x'])).toEqual([[28, 29, 30, 31, 32], [null, 2, 3, 4, 5]]);
  });
  it('takes the newest of the recorded where there is no room for all, and all of it where nothing was seen', () => {
    const full = ring(3, [[29, 1], [30, 2], [31, 3], [32, 4]]);
    full.recall(ring(2, [[28, 9], [29, 9]]));
    expect(full.read(['x'])).toEqual([[30, 31, 32], [2, 3, 4]]);
    const empty = ring(2, []);
    empty.recall(ring(4, [[1, 1], [2, 2], [3, 3]]));
    expect(empty.read(['x'])).toEqual([[2, 3], [2, 3]]);
  });
  it('knows nothing of the time in which it was told nothing, until that is recalled', () => {
    const away = new Ring(['x'], 9, 3);
    for (const [time, x] of [[1, 5], [2, 5], [12, 7], [13, 7]] as const) away.push(time, [x]);
    expect(away.read(['x'])).toEqual([[1, 2, 3, 12, 13], [5, 5, null, 7, 7]]);
    away.recall(ring(9, [[0, 1], [1, 99], [3, 2], [6, undefined], [9, 6], [12, 99], [15, 99]]));
    expect(away.read(['x'])).toEqual([[0, 1, 2, 3, 6, 9, 12, 13], [1, 5, 5, 2, null, 6, 7, 7]]);
    // What was not recorded stays unknown.
    const unknown = new Ring(['x'], 9, 3);
    for (const time of [1, 12]) unknown.push(time, [7]);
    unknown.recall(ring(9, []));
    expect(unknown.read(['x'])).toEqual([[1, 2, 12], [7, null, 7]]);
  });
  it('has means of several seconds, and none of those of which nothing is known', () => {
    expect(means([[9, 10, 11, 41], [1, 2, null, 4], [0, 0, 3, 9]], 10)).toEqual([[0, 10, 20, 30, 40], [1, 2, null, null, 4], [0, 1.5, null, null, 9]]);
    expect(means([[], []], 10)).toEqual([[], []]);
  });
});

describe('the link', () => {
  it('says since when figures are old', () => {
    expect(link(100, undefined, false).state).toBe('starting');
    expect(link(1_500, 1_000, false).state).toBe('live');
    expect(link(1_500, 1_000, true).state).toBe('reconnecting');
    expect(link(4_500, 1_000, false).state).toBe('reconnecting');
    expect(link(11_000, 1_000, true)).toEqual({ state: 'stale', at: 1_000 });
    // A page that was hidden did not ask: that the daemon is silent, it does not know yet.
    expect(link(60_000, 1_000, false, 59_900)).toEqual({ state: 'reconnecting', at: 1_000 });
    expect(link(69_900, 1_000, true, 59_900).state).toBe('stale');
  });
  it('is tried again ever more seldom', () => {
    expect([0, 1, 2, 3, 9].map(pause)).toEqual([500, 1000, 2000, 4000, 5000]);
  });
});
