// Everything that the page can change: what takes something away asks for a name and says what it hits. A change that is
// in neither table fails.

import { describe, expect, it } from 'vitest';
import type { AlertRule, Bed, BenchRun, Grant, Job } from '../api/types.ts';
import { endOtherSessions, removeUser, revokeToken } from './account_changes.ts';
import { removeReceiver, resetRule } from './alert_changes.ts';
import { forgetRun } from './bench.ts';
import { dropSession, purgeLun, removeHost, removeLun, revoke, type Change } from './changes.ts';
import { removePool, restartNode } from './config_changes.ts';
import { forgetDisk } from './disks.ts';
import { rollBack } from './generations.ts';
import { cancelJob } from './jobs.ts';
import { tearDown } from './lab.ts';
import { discardJournal, removeTarget } from './set_changes.ts';

const run = { id: 3, name: 'nightly', target: 'vm01', started: '2026-11-26T04:10:00Z', whole_seconds: 60, summary: { iops: 902 } } as BenchRun;
const bed = { id: 1, topology: 'pairs', machines: [{ name: 'host' }, { name: 'target' }], switches: [{}, {}], links: [{}, {}, {}, {}] } as unknown as Bed;
const rule = { id: 'pool_filling', bounds: { above_percent: { value: 2, default: 80 }, below_percent: { value: 75, default: 75 } } } as unknown as AlertRule;

/** What takes something away: the name that is typed, and words of what it hits. With `plan` the daemon's plan says it. */
const TAKES: Record<string, [change: Change, typed: string, hits: RegExp | 'plan']> = {
  revoke: [revoke({ name: 'esx01:vms:vm01', host: 'esx01', lun: 'vm01', target: 'vms' } as Grant), 'esx01', 'plan'],
  removeHost: [removeHost('esx01'), 'esx01', 'plan'],
  removeTarget: [removeTarget('vms'), 'vms', 'plan'],
  removeLun: [removeLun('vm01'), 'vm01', 'plan'],
  purgeLun: [purgeLun('vm01'), 'vm01', 'plan'],
  dropSession: [dropSession(7, 'esx01'), 'esx01', 'plan'],
  // With the losses of each LUN (DiscardJournal.svelte).
  discardJournal: [discardJournal('default'), 'default', /not destaged are lost/],
  forgetDisk: [forgetDisk('ZC10002'), 'ZC10002', /nobody misses it/],
  removePool: [removePool('fast'), 'fast', /nothing is deleted/],
  restartNode: [restartNode('san-a', 2), 'san-a', /ends 2 sessions/],
  forgetRun: [forgetRun(run), 'nightly', /902 operations a second in 60 seconds of vm01/],
  tearDown: [tearDown(bed), 'pairs', /host, target, 2 switches, 4 links/],
  rollBack: [rollBack(12), 'generation 12', 'plan'],
  removeUser: [removeUser('ann'), 'ann', 'plan'],
  revokeToken: [revokeToken('t1', 'prometheus'), 'prometheus', 'plan'],
  endOtherSessions: [endOtherSessions('ann', 2), 'ann', /2 sessions of ann/],
  removeReceiver: [removeReceiver('pager'), 'pager', /also not what waits/],
  resetRule: [resetRule(rule), 'pool_filling', /above_percent goes from 2 back to 80\.$/],
  // A scrub and a run lose nothing: only other jobs ask.
  cancelJob: [cancelJob({ id: 4, kind: 'resize', object: 'vm01' } as Job), 'vm01', /made of vm01 is undone/],
};

/** What takes nothing away, or can be had again by its opposite. What a plan finds to be a loss asks all the same. */
const TAKES_NOTHING = [
  'createShare', 'allow', 'grant', 'createHost', 'resize', 'rename', 'set', 'restoreLun', 'scrub', 'reopenJournal', 'createTarget',
  'createUser', 'setUser', 'resetPassword', 'createToken', 'ownPassword', 'acknowledge', 'unacknowledge', 'silenceAlert', 'unsilenceAlert', 'createSilence', 'endSilence',
  'setConfig', 'setRule', 'createReceiver', 'setReceiver', 'testReceiver', 'startRun', 'cancelRun', 'setLink', 'startBed', 'adopt',
];

const sources = import.meta.glob<string>(['./*.ts', '!./*.test.ts'], { query: '?raw', import: 'default', eager: true });
const screens = import.meta.glob<string>('../**/*.svelte', { query: '?raw', import: 'default', eager: true });

/** The changes of all sources: what is exported and has a method. */
function changes(): string[] {
  return Object.values(sources).flatMap((text) =>
    text.split(/^(?=export )/m).flatMap((part) => (/\bmethod: '(POST|PUT|PATCH|DELETE)'/.test(part) ? (/^export (?:function|const) (\w+)/.exec(part)?.[1] ?? part.slice(0, 60)) : [])),
  );
}

describe('a change that takes something away', () => {
  it('is in the table of those that do, or of those that do not', () => {
    const found = changes();
    expect(found.length).toBeGreaterThan(35);
    expect(found.toSorted()).toEqual([...Object.keys(TAKES), ...TAKES_NOTHING].toSorted());
  });

  it('stands with all others, and not in a screen', () => {
    const within = Object.entries(screens).filter(([, text]) => /\bmethod: '(POST|PUT|PATCH|DELETE)'/.test(text)).map(([path]) => path);
    expect(within).toEqual([]);
  });

  it.each(Object.entries(TAKES))('%s asks for the name and says what it hits', (_, [change, typed, hits]) => {
    expect(change.typed).toBe(typed);
    if (hits === 'plan') expect(change.plans).toBe(true);
    else expect(change.explain).toMatch(hits);
  });

  it('is no scrub or run that stops, which keep what they have, but a lab that goes', () => {
    const cancelled = (kind: string) => cancelJob({ id: 4, kind, object: 'vm01' } as Job);
    expect([cancelled('scrub').typed, cancelled('bench').typed, cancelled('lab').typed]).toEqual([undefined, undefined, 'vm01']);
    expect(cancelled('lab').explain).toMatch(/namespaces go/);
  });
});
