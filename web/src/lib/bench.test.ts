import { describe, expect, it } from 'vitest';
import type { Bed, BenchSecond } from '../api/types.ts';
import { joined, lines, runForm, startRun, wrong } from './bench.ts';
import { curl } from './changes.ts';
import { clickWord, draw } from './lab.ts';

describe('a run that is put together', () => {
  it('names exactly one target, and what differs alone', () => {
    const change = startRun({ ...runForm('vm01'), region: '1G', from: 'eth0, eth1', verify: true }, { command_line: 'causeway bench x' });
    expect(change.body).toMatchObject({ lun: 'vm01', load: { block: '4K', region: '1G', verify: true }, paths: { from: ['eth0', 'eth1'] } });
    expect(Object.keys(change.body as object)).not.toContain('memory');
    expect(change.cli).toBe('causeway bench x');
    expect(curl(change, 'http://x')).toContain('http://x/api/v1/bench/runs \\');
  });
  it('says in its call, too, that what is lost is meant', () => {
    const change = startRun({ ...runForm('vm01'), writePercent: 50 }, { command_line: 'causeway bench --destroy x', confirm: 'vm01' });
    expect(change.path).toBe('bench/runs?force=true');
    expect(curl(change, 'http://x')).toContain("http://x/api/v1/bench/runs?force=true'");
    // The line has a word of its own for that.
    expect(change.cli).toBe('causeway bench --destroy x');
  });
  it('shows a secret nowhere, and says what is missing', () => {
    const form = { ...runForm(), of: 'url' as const, url: 'iscsi://10.0.0.1/iqn.x:y/0', chapUser: 'u', chapSecret: 'SECRET-SECRET' };
    const change = startRun(form);
    expect(JSON.stringify(change.body)).toContain('SECRET');
    expect(change.cli + curl(change, 'http://x')).not.toContain('SECRET');
    expect(wrong(form, 60)).toBe('');
    expect(wrong({ ...form, url: 'http://x' }, 60)).not.toBe('');
    expect(wrong(runForm(), 60)).toBe('Choose a LUN.');
    expect(wrong({ ...runForm('a'), seconds: 61 }, 60)).toContain('60');
    expect(wrong({ ...runForm('a'), iopsMax: 'abc' }, 60)).toContain('IOPS at most: a whole number');
    expect(startRun({ ...runForm('a'), iopsMax: '5k' }).body).toMatchObject({ load: { iops_max: 5_000 } });
  });
});

describe('the seconds of a run', () => {
  const second = (n: number, paths: [string, number][] = []): BenchSecond => ({
    second: n, phase: 'measuring', iops: n, read_iops: n, write_iops: 0, bytes_per_second: 0, errors: 0,
    paths: paths.map(([path, iops]) => ({ path, from: '', portal: '', state: 'active', iops, bytes_per_second: 0, retransmits: 0 })),
  });
  it('are joined without any twice', () => {
    expect(joined([second(1), second(2)], [second(2), second(3)]).map((one) => one.second)).toEqual([1, 2, 3]);
  });
  it('of which nothing counts are lines of their own, so that all charts have the same seconds', () => {
    const { read_iops: _, write_iops: __, ...warm } = { ...second(1), phase: 'warm_up', iops: 9, bytes_per_second: 90 };
    const ring = lines('2026-11-26T10:00:00.000Z', [warm, { ...second(2), bytes_per_second: 20 }]);
    const [, ...columns] = ring.read(['read_iops', 'bytes_per_second', 'early_iops', 'early_bytes']);
    expect(columns).toEqual([[null, 2], [null, 20], [9, null], [90, null]]);
    expect(ring.since()).toBe(Date.parse('2026-11-26T10:00:00.000Z') / 1000 + 1);
  });
  it('are lines with a gap where a path was not there', () => {
    const ring = lines('2026-11-26T10:00:00.000Z', [second(1, [['a', 5]]), second(2, [['b', 7]])]);
    const begin = Date.parse('2026-11-26T10:00:00.000Z') / 1000;
    expect(ring.read(['read_iops', 'path a', 'path b'])).toEqual([[begin + 1, begin + 2], [1, 2], [5, null], [null, 7]]);
  });
});

describe('the drawing of a lab', () => {
  it('says what a click makes of a link: the fault that is chosen, and no other', () => {
    expect((['cut', 'black_hole', 'slow'] as const).map((fault) => clickWord('up', fault))).toEqual(['Cut it', 'Make it a black hole', 'Make it slow']);
    expect((['cut', 'black_hole', 'slow'] as const).map((state) => clickWord(state, 'slow'))).toEqual(['Up again', 'Up again', 'Up again']);
  });
  const port = (name: string) => ({ name, link: name });
  const bed = {
    machines: [{ name: 'host', kind: 'host', ports: [port('eth0'), port('eth1')] }, { name: 'target', kind: 'target', ports: [port('p0')] }],
    switches: [{ name: 'br0', network: 0 }],
    links: [{ id: 'eth0', machine: 'host', port: 'eth0', switch: 'br0', state: 'up' }, { id: 'p0', machine: 'target', port: 'p0', switch: 'br0', state: 'cut' }],
    paths: [{ nic: 'eth0', port: 'p0', bytes_per_second: 3 }, { nic: 'eth1', port: 'p0', bytes_per_second: 4 }],
  } as unknown as Bed;
  it('has each link from its port to its switch, with what goes over it', () => {
    const { lines: all, boxes } = draw(bed);
    expect(all.map((line) => line.bytes)).toEqual([3, 7]);
    expect(boxes.map((box) => box.kind)).toEqual(['host', 'target', 'switch']);
    expect(all.every((line) => Number.isFinite(line.x1 + line.x2 + line.y1 + line.y2))).toBe(true);
  });
});
