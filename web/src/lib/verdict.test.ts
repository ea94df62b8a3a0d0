import { describe, expect, it } from 'vitest';
import type { Alert, Grant, Host, NotSafe, Status } from '../api/types.ts';
import { missing, pathsShown, singlePath } from './paths.ts';
import { nextOnce, notesBeside, verdict } from './verdict.ts';

const status = {
  node: 'san', health: 'ok', problems: [], generation: 1, pools: [], counts: { luns: 2, luns_offline: 0, hosts: 3 },
  portals: [{ group: 'a', tag: 1, address: 'p' }, { group: 'a', tag: 1, address: 'q' }],
} as unknown as Status;
const host = (name: string, least: number) => ({ name, iqn: [], sessions: least, redundancy: { connected: least > 0, least_paths: least } }) as Host;
const single = host('a', 1);
const two = [host('b', 2), host('c', 0)];
const grants = ['a', 'b', 'c'].map((host) => ({ host, lun: 'vm1' }) as Grant);
const alert = (more: Partial<Alert>): Alert => ({
  id: 7, state: 'firing', severity: 'critical', rule: 'lun_offline', title: '', kind: 'lun', object: 'vm1', cause: 'LUN vm1 is offline: gone', next_step: 'look',
  doc: '', fired: '2026-11-27T08:00:00Z', steps: [], ...more,
});
const acknowledged = { state: 'acknowledged', acknowledged: { by: 'ada', at: '2026-11-27T08:01:00Z' } } as const;

describe('a host\'s paths', () => {
  it('are said in words', () => {
    expect([0, 1, 2].map((least) => pathsShown(host('h', least).redundancy).word)).toEqual(['not connected', 'single path', '2 paths']);
    expect(singlePath([single, ...two])).toEqual(['a']);
  });
  it('may all be gone: of hosts that have grants', () => {
    expect(missing(grants, two)).toEqual({ hosts: ['a', 'c'], of: 3 });
    // Nobody misses whoever may come.
    expect(missing(grants, [two[0]!, { ...two[1]!, iqn: ['*'] }])).toEqual({ hosts: ['a'], of: 2 });
  });
});

describe('the verdict', () => {
  it('says what to do first', () => {
    expect(verdict(status, [single, ...two])).toMatchObject({ state: 'warn', todo: [{ text: 'Host a has a single path: log it in to a second portal.', href: '/hosts/a' }] });
    const good = verdict(status, two);
    expect(good).toEqual({ state: 'good', sentence: 'All data safe. 1 host connected, with two paths or more. Nothing to do.', todo: [], cared: [], unsafe: [] });
    expect(verdict({ ...status, health: 'degraded', problems: ['x is gone'] }, []).todo).toEqual([{ text: 'x is gone' }]);
  });
  it('says that something does not serve where that is so, and not of what is to come', () => {
    const said = (more: Partial<typeof status>) => verdict({ ...status, health: 'degraded', ...more }, two);
    expect(said({ problems: ['pool slow has 9 % free space'] })).toMatchObject({ state: 'warn', sentence: 'Everything serves. 1 thing to do.' });
    const pools = [{ name: 'slow', state: 'low' }] as Status['pools'];
    expect(said({ pools, problems: ['pool slow has only 9 % free space'] }).sentence).toBe('Everything serves, but pool slow is nearly full. 1 thing to do.');
    const counts = { ...status.counts, luns: 3, luns_offline: 1 };
    expect(said({ counts, problems: ['LUN x is offline'] })).toMatchObject({ state: 'bad', sentence: '1 of 3 LUNs does not serve. 1 thing to do.' });
    const portals = [...status.portals, { ...status.portals[0]!, problem: 'in use' }];
    expect(said({ counts: { ...counts, luns_offline: 2 }, portals, problems: ['a', 'b'] }).sentence).toBe('2 of 3 LUNs do not serve, 1 portal does not listen. 2 things to do.');
  });
  it('says that a pool or its journal is away or full, which hits hosts, before all that is less', () => {
    const said = (...pools: unknown[]) => verdict({ ...status, health: 'degraded', problems: ['something'], pools: pools as Status['pools'] }, [single, ...two]);
    const journal = (state: string, full = false) => ({ name: 'fast', state: 'ok', journal: { state, full } });
    expect(['missing', 'silent', 'unusable', 'full'].map((state) => said({ name: 'slow', state }).sentence)).toEqual(['is missing', 'does not answer', 'cannot be used', 'is full'].map((words) => `Pool slow ${words}. 2 things to do.`));
    expect([journal('failed'), journal('missing'), journal('failed', true)].map((one) => said(one).sentence)).toEqual(['has failed', 'is missing', 'is full'].map((words) => `The journal of pool fast ${words}. 2 things to do.`));
    expect(said(journal('failed')).state).toBe('bad');
    // LUNs of a pool of members have all that they were given.
    expect(said({ name: 'slow', state: 'full', members: [{}] }, journal('open')).sentence).toBe('Everything serves. 2 things to do.');
  });
  it('names the most important first: what does not serve, critical alerts, what is known, warnings, paths, hosts that are not there', () => {
    const counts = { ...status.counts, luns_offline: 1 };
    const critical = alert({ id: 1, title: 'Blocks of a LUN are damaged', rule: 'scrub_findings' });
    const cared = alert({ ...acknowledged, id: 2, object: 'x', cause: 'disk x is dead' });
    const warning = alert({ id: 4, severity: 'warning', rule: 'pool_filling', title: 'A pool fills up', object: 'slow' });
    const path = alert({ id: 3, severity: 'warning', rule: 'host_single_path', title: 'A host has a single path', kind: 'host', object: 'a' });
    const of = (node: Partial<Status>, ...alerts: Alert[]) => verdict({ ...status, ...node }, [single, ...two], alerts, grants);
    const sentences = [of({ counts }, path, warning, cared, critical), of({}, path, warning, cared, critical, { ...critical, id: 5 }), of({}, path, warning, cared), of({}, path, warning), of({}, path), of({})].map((one) => one.sentence);
    expect(sentences).toEqual([
      '1 of 2 LUNs does not serve. 4 things to do.',
      'Blocks of a LUN are damaged, and 1 more critical alert. 5 things to do.',
      'Disk x is dead (acknowledged by ada). 3 things to do.',
      'Everything serves, but a pool fills up. 3 things to do.',
      'Everything serves, but 1 of 2 hosts has a single path. 2 things to do.',
      'Everything serves, but 1 of 2 hosts has a single path. 2 things to do.',
    ]);
    // What the sentence names is the first thing to do, whatever fired last.
    expect(of({}, { ...path, fired: '2026-11-27T09:00:00Z' }, warning).todo.map((one) => one.href)).toEqual(['/alerts/4', '/alerts/3', '/hosts/c']);
    expect(of({}, path, warning, critical).todo.map((one) => one.href)).toEqual(['/alerts/1', '/alerts/4', '/alerts/3', '/hosts/c']);
    expect(verdict(status, two, [], grants.slice(1)).sentence).toMatch(/^The node serves, but 1 of 2 hosts/);
  });
  it('knows how many alerts there are for who has not logged in, and that a critical one is not good', () => {
    const counted = (critical: number, warning: number, info = 0) => verdict({ ...status, alerts: { critical, warning, info, acknowledged: 0, silenced: 0 } }, two);
    expect(counted(1, 1)).toMatchObject({ state: 'bad', sentence: '1 critical alert. 1 thing to do.', todo: [{ text: '2 alerts: log in to see what is wrong.' }] });
    expect(counted(0, 1)).toMatchObject({ state: 'warn', sentence: 'Everything serves. 1 thing to do.' });
    expect(counted(0, 0, 1)).toMatchObject({ state: 'good', todo: [] });
  });
  it('says of hosts with a single path and of maintenance what nobody has to do anything about', () => {
    const silenced = alert({ state: 'silenced', severity: 'warning', rule: 'host_single_path', object: 'a' });
    const counts = { ...status.counts, targets_in_maintenance: 1 };
    // Whoever silenced it knows.
    expect(verdict({ ...status, counts }, [single, ...two], [silenced])).toMatchObject({
      state: 'good', sentence: 'All data safe. 2 hosts connected, 1 of them with a single path. Nothing to do. 1 alert acknowledged or silenced. 1 target in maintenance.',
    });
    expect(verdict(status, [single], [silenced]).sentence).toMatch(/^All data safe\. 1 host connected, with a single path\./);
  });
  it('is the sentence of the best of all where nothing is wrong', () => {
    const hosts = ['a', 'b', 'c', 'd'].map((name) => host(name, 2));
    expect(verdict(status, hosts).sentence).toBe('All data safe. 4 hosts connected, all with two paths or more. Nothing to do.');
  });
  it('is not good while a LUN is offline, whoever takes care of it, and says who does', () => {
    const offline: Status = { ...status, health: 'degraded', problems: ['LUN vm1 is offline: gone'], counts: { ...status.counts, luns_offline: 1 } };
    const said = verdict(offline, two, [alert(acknowledged)]);
    expect(said).toMatchObject({ state: 'bad', sentence: 'LUN vm1 is offline: gone (acknowledged by ada). Nothing else to do.', todo: [], cared: [{ href: '/alerts/7' }] });
    const mixed = verdict(offline, two, [alert({ state: 'silenced', silenced_until: '2026-11-27' }), alert({ id: 8, severity: 'warning', rule: 'x', object: 'pool', cause: 'c' })]);
    expect(mixed).toMatchObject({ state: 'bad', sentence: '1 of 2 LUNs does not serve. 1 thing to do.', cared: [{ text: expect.stringContaining('(silenced until ') as string }] });
    // The daemon may say nothing more of it.
    expect(verdict({ ...offline, problems: [] }, two, []).state).toBe('bad');
  });
  it('says an offline portal and its alert once, also while somebody takes care of it', () => {
    const cause = 'portal 10.0.1.1:3260 of group a does not listen: in use';
    const offline: Status = { ...status, health: 'degraded', problems: ['portal 10.0.1.1:3260 does not listen: in use'], portals: [{ ...status.portals[0]!, address: '10.0.1.1:3260', problem: 'in use' }] };
    const portal = alert({ rule: 'portal_offline', kind: 'portal', object: '10.0.1.1:3260', cause });
    expect(verdict(offline, two, [portal])).toMatchObject({ sentence: '1 portal does not listen. 1 thing to do.', todo: [{ href: '/alerts/7' }] });
    expect(verdict(offline, two, [{ ...portal, ...acknowledged }])).toMatchObject({ todo: [], cared: [{ text: 'Portal 10.0.1.1:3260 of group a does not listen: in use (acknowledged by ada).' }] });
  });
  it('leaves out no problem because it has the number of a bay in it', () => {
    const full: Status = { ...status, health: 'degraded', problems: ['pool slow has only 2 % free space'] };
    const bay = alert({ severity: 'warning', rule: 'device_health', kind: 'bay', object: '2', cause: 'bay 2 of enclosure 5 holds no disk' });
    expect(verdict(full, two, [bay]).todo.map((one) => one.text)).toEqual(['pool slow has only 2 % free space', 'Bay 2 of enclosure 5 holds no disk.']);
  });
  it('is not good with a critical alert in any open state, nor with a node that is not well', () => {
    expect(verdict(status, two, [alert({ ...acknowledged, object: 'x', cause: 'blocks of x are bad' })])).toMatchObject({ state: 'bad', sentence: 'Blocks of x are bad (acknowledged by ada). Nothing else to do.' });
    expect(verdict(status, two, [alert({ state: 'resolved' })]).state).toBe('good');
    expect(verdict(status, two, [alert({ ...acknowledged, severity: 'warning', object: 'x' })])).toMatchObject({ state: 'good', sentence: expect.stringMatching(/Nothing to do\. 1 alert acknowledged/) as string });
    expect(verdict({ ...status, health: 'degraded' }, two)).toMatchObject({ state: 'warn', sentence: 'The node says that it is degraded.' });
  });
  it('calls no data safe that is not, and says which', () => {
    const memory: NotSafe = { lost_with: 'daemon', by_default: false, luns: 1, names: ['scratch'], text: '1 LUN is in memory and gone with the daemon: scratch' };
    const asked: NotSafe = { ...memory, lost_with: 'power', names: ['db'], text: '1 LUN loses unflushed writes with the power: db' };
    const said = verdict({ ...status, not_safe: [memory, asked] }, two);
    expect(said).toEqual({
      state: 'warn', todo: [], cared: [], unsafe: [],
      sentence: 'Not all data is safe: 1 LUN is in memory and gone with the daemon: scratch; 1 LUN loses unflushed writes with the power: db. 1 host connected, with two paths or more. Nothing to do.',
    });
    // What nobody chose is something to do.
    const byDefault = verdict({ ...status, not_safe: [{ ...asked, by_default: true }] }, two);
    expect(byDefault).toMatchObject({ state: 'warn', sentence: expect.stringMatching(/1 thing to do\.$/) as string, todo: [{ text: `${asked.text}.`, href: '/luns/db' }] });
    // Where something worse is said first, it is said as well.
    expect(verdict({ ...status, not_safe: [asked], health: 'degraded', problems: ['x is gone'] }, two)).toMatchObject({ unsafe: [asked.text] });
    // Not once more where it is something to do.
    expect(verdict({ ...status, not_safe: [{ ...asked, by_default: true }], health: 'degraded', problems: ['x is gone'] }, two)).toMatchObject({ unsafe: [], todo: [{ text: 'x is gone' }, { text: `${asked.text}.` }] });
  });
  it('says what is next once for all that have it in common, behind the last of them', () => {
    const todo = [['a', 'push'], ['b', 'push'], ['c', 'log in'], ['d'], ['e', 'push']].map(([text = '', next]) => ({ text, ...(next ? { next } : {}) }));
    expect(nextOnce(todo)).toEqual([{ text: 'a' }, { text: 'b', next: 'push' }, { text: 'c', next: 'log in' }, { text: 'd' }, { text: 'e', next: 'push' }]);
  });
  it('is not followed by notes that say the same once more', () => {
    const power = (by_default: boolean): NotSafe => ({ lost_with: 'power', by_default, luns: 1, names: ['db'], text: '1 LUN loses unflushed writes with the power: db' });
    const memory: NotSafe = { ...power(false), lost_with: 'daemon', text: '1 LUN is in memory and gone with the daemon: scratch' };
    const [byDefault, asked] = ['by default (there was no journal)', 'as asked for'].map((how) => `cache = "volatile" ${how} in LUN db: acknowledged writes may be lost`) as [string, string];
    const other = 'pool slow: node.toml lets it be "volatile" by default (as asked for)';
    const all = [byDefault, asked, memory.text, other];
    expect(notesBeside({ notes: all, not_safe: [power(true), power(false), memory] })).toEqual([other]);
    expect(notesBeside({ notes: all, not_safe: [power(true)] })).toEqual([asked, memory.text, other]);
    expect(notesBeside({ notes: all, not_safe: [power(false)] })).toEqual([byDefault, memory.text, other]);
    expect(notesBeside({ notes: all })).toEqual(all);
    expect(notesBeside({})).toEqual([]);
  });
  it('says which host with grants has lost all its paths, with the way to it', () => {
    const said = verdict(status, two, [], grants.slice(1));
    expect(said).toMatchObject({ state: 'warn', todo: [{ text: '1 of 2 hosts that have grants is not connected: c.', href: '/hosts/c' }] });
    expect(said.sentence).toBe('The node serves, but 1 of 2 hosts that have grants is not connected. 1 thing to do.');
    expect(verdict(status, two, [], grants).todo[0]).toMatchObject({ text: '2 of 3 hosts that have grants are not connected: a, c.', href: '/hosts?sort=state' });
    expect(verdict(status, [], [], grants)).toMatchObject({ state: 'warn', sentence: 'All data safe. No host is connected.', todo: [{ href: '/hosts?sort=state' }, { href: '/luns' }] });
  });
});
