import { describe, expect, it } from 'vitest';
import type { Member, Pool } from '../api/types.ts';
import {
  acknowledged,
  fill,
  forecast,
  isForetold,
  layoutSaid,
  memberFree,
  memberNext,
  poolFor,
  reserved,
  roomSaid,
  usable,
} from './pools.ts';

const pool = (used: number, available: number): Pool => ({ total: 252, used, available }) as Pool;

describe('how full a pool is', () => {
  it('leaves out what its file system keeps for itself, as alerts do', () => {
    expect(fill(pool(40, 60))).toBe(0.4);
    expect(fill(pool(0, 60))).toBe(0);
    expect(fill(pool(252, 0))).toBe(1);
  });
  it('is nothing where nothing is known', () => expect(fill(pool(0, 0))).toBe(0));
});

describe('the room of a pool', () => {
  const GiB = 2 ** 30;
  it('is what can be used, and what the file system keeps is named', () => {
    const some = { total: 252 * GiB, used: 40 * GiB, available: 200 * GiB };
    expect([usable(some), reserved(some)]).toEqual([240 * GiB, 12 * GiB]);
    expect(roomSaid(some)).toBe('200 GiB of 240 GiB free, 12 GiB more reserved by the file system');
    expect(roomSaid({ ...some, total: 240 * GiB })).toBe('200 GiB of 240 GiB free');
    // A file system that grew between two readings keeps nothing back.
    expect(reserved({ ...some, total: 100 * GiB })).toBe(0);
  });
});

describe('an acknowledged write', () => {
  it('has what its pool gives it: a journal, a cluster, or nothing but memory', () => {
    const journal = { state: 'open' } as Pool['journal'];
    const said = [{ layout: 'directory', journal }, { layout: 'directory' }, { layout: 'stripe' }, { layout: 'span' }, { layout: 'rbd' }].map((one) => acknowledged(one as Pool));
    const memory = 'memory until the host flushes';
    expect(said).toEqual(['the journal of its pool', memory, memory, memory, 'stable media: the cluster keeps it']);
  });
});

describe('a member of a pool', () => {
  const member = (of: Partial<Member>) => ({ path: 'm', taken_bytes: 0, last_event: 9, event: 9, state: 'present', size_bytes: 50, ...of }) as Member;
  it('has free what LUNs do not have and the pool does not keep', () => {
    const members = [member({ taken_bytes: 47 }), member({ taken_bytes: 10 })];
    const two = { total: 94, members };
    expect(members.map((one) => memberFree(two, one))).toEqual([0, 37]);
    expect(memberFree(two, member({ taken_bytes: 60 }))).toBe(0);
    // What is away has no size, and nobody knows what the pool keeps on the others.
    const one = { total: 94, members: [members[1]!, { path: 'x', last_event: 1, taken_bytes: 0, state: 'absent' }] };
    expect([memberFree(one, members[1]!), memberFree(one, one.members[1]!)]).toEqual([40, undefined]);
  });
  it('that cannot be used says what to do, and what it missed', () => {
    expect(memberNext(member({}))).toBe('');
    const absent: Pick<Member, 'state' | 'last_event' | 'event'> = { state: 'absent', last_event: 9 };
    expect(memberNext(absent)).toBe('Bring it back: it is taken back by itself if it missed nothing. Last event 9.');
    expect(memberNext(member({ state: 'stale: it has event 7; it was away, or is an old copy', event: 7 }))).toMatch(/^It is not taken back\. .* Event 7 of 9\.$/);
    expect(memberNext(member({ state: 'smaller than it was' }))).toMatch(/^It is not used\..* Last event 9\.$/);
  });
  it('costs what the layout says', () => {
    expect(['span', 'stripe', 'directory', 'rbd', 'other'].map(layoutSaid)).toEqual([expect.stringMatching(/lost with any of those/), expect.stringMatching(/every LUN/), expect.stringMatching(/is a file/), expect.stringMatching(/image/), 'other']);
  });
});

describe('a forecast', () => {
  const days = { trend: 'fills', text: 'full on about 14 March' } as const;
  const little = { trend: 'too_little', text: 'too little history for a forecast' } as const;
  it('says one thing: what is near by the last hour, else what days say', () => {
    expect(forecast({ forecast: days })).toBe('full on about 14 March');
    expect(forecast({ forecast: days, full_in_seconds: 7_200 })).toBe('full in 2 h 0 min at the rate of the last hour');
    expect(forecast({ forecast: days, full_in_seconds: 90_000 })).toBe('full on about 14 March');
    expect(forecast({ forecast: little, full_in_seconds: 90_000 })).toBe('too little history for a forecast');
    expect(forecast({})).toBe('does not fill up at the rate of the last hour');
  });
  it('of less than a day is no headline, unless the pool is about to be full', () => {
    expect([{ forecast: little }, { forecast: little, full_in_seconds: 90_000 }, { forecast: little, full_in_seconds: 60 }, { forecast: days }].map(isForetold)).toEqual([false, false, true, true]);
  });
});

describe('the pool of a new LUN', () => {
  const pools = (...names: string[]) => names.map((name) => ({ name })) as Pool[];
  it('is nobody’s guess: of several none is taken but the one called default', () => {
    const two = pools('fast', 'slow');
    expect([poolFor(two, '')?.name, poolFor(two, 'slow')?.name]).toEqual([undefined, 'slow']);
    expect([poolFor(pools('tank'), '')?.name, poolFor(pools('fast', 'default'), '')?.name, poolFor([], '')]).toEqual(['tank', 'default', undefined]);
  });
});
