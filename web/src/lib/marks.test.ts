import { describe, expect, it } from 'vitest';
import type { NodeEvent } from '../api/types.ts';
import { APART, isMarked, marked, placed } from './marks.ts';

const event = (id: number, code: string, severity: string, object: string, fields?: object): NodeEvent => {
  const [kind = '', name = ''] = object.split('/');
  return { id, time: new Date(id * 1000).toISOString(), code, severity, object: { kind, name }, message: `${code} of ${object}`, ...(fields ? { fields } : {}) };
};
const started = event(1, 'node_started', 'info', 'node/san');
const offline = event(2, 'lun_offline', 'error', 'lun/vm1');
const online = event(3, 'lun_online', 'info', 'lun/vm1');
const fills = event(4, 'pool_low', 'warning', 'pool/vm1');
const applied = (objects?: string) => event(5, 'config_applied', 'info', 'node/san', objects === undefined ? { settings: 'scrub.every_days' } : { objects });
const aside = event(6, 'records_damaged', 'warning', 'node/san');

describe('the marks of a chart', () => {
  it('of the node are all that is bad, and what changes figures', () => {
    const all = [started, offline, online, fills, applied('lun a'), applied(), aside];
    expect(all.map((one) => isMarked(one, 'node'))).toEqual([true, true, false, true, true, true, true]);
  });

  it('of an object are those that are about it, each restart, and changes that may have been its own', () => {
    const all = [started, offline, online, fills, aside];
    expect(all.map((one) => isMarked(one, 'lun:vm1'))).toEqual([true, true, false, false, false]);
    expect(all.map((one) => isMarked(one, 'pool:vm1'))).toEqual([true, false, false, true, false]);
    const changes = ['lun vm1', 'host vm1, lun vm1', 'lun vm12', 'host vm1', 'lun a, lun b, lun c and 5 more', undefined];
    expect(changes.map((objects) => isMarked(applied(objects), 'lun:vm1'))).toEqual([true, true, false, false, true, false]);
    expect(isMarked(applied('host iqn'), 'host:iqn')).toBe(true);
    expect(changes.map((objects) => isMarked(applied(objects), 'pool:vm1'))).not.toContain(true);
  });

  it('are in the order in which it happened, and each is there once', () => {
    expect(marked('node', [fills, offline], [online, offline, started]).map((one) => one.id)).toEqual([1, 2, 4]);
  });

  it('that would lie over each other are one, which is as bad as the worst of them', () => {
    const at = [0, 10, APART - 1, APART, 100].map((second, i) => event(second, `code${i}`, i === 1 ? 'error' : 'info', 'node/san'));
    const marks = placed(at, (seconds) => seconds, 100);
    expect(marks.map((one) => [one.at, one.state, one.events.length])).toEqual([[0, 'bad', 3], [APART, 'off', 1], [100, 'off', 1]]);
    // Each can be hit.
    for (const [i, one] of marks.entries()) expect(one.at - (marks[i - 1]?.at ?? -APART)).toBeGreaterThanOrEqual(APART);
  });

  it('that time has moved out of the chart are not there, and none of the others becomes another one', () => {
    const events = [0, 10, 30, 50].map((second) => event(second, 'path_lost', 'warning', 'host/a'));
    const ids = (from: number, width = 100) => placed(events, (seconds) => seconds - from, width).map((one) => [one.id, one.at, one.events.length]);
    expect(ids(0)).toEqual([[0, 0, 2], [30, 30, 2]]);
    expect(ids(5)).toEqual([[0, 0, 1], [30, 25, 2]]);
    expect(ids(11)).toEqual([[30, 19, 2]]);
    expect(ids(-20, 30)).toEqual([[0, 20, 2]]);
  });
});
