import { describe, expect, it } from 'vitest';
import type { Lun } from '../api/types.ts';
import { ages, ageSaid, bandOf, BANDS, bandState, COLUMNS, FORMS, scheduleSaid } from './ages.ts';
import { sorted } from './columns.ts';

const DAY = 86_400_000;
const NOW = Date.parse('2026-11-27T00:00:00Z');
const lun = (name: string, days?: number, more: Partial<Lun> = {}) => ({ name, state: 'online', grants: [], size: 1, ...(days !== undefined && { verified: new Date(NOW - days * DAY).toISOString() }), ...more }) as unknown as Lun;

describe('ages of what was read whole', () => {
  const all = [lun('new', 1), lun('never'), lun('old', 100), lun('late', 40), lun('gone', 400, { state: 'removed' })];
  it('are the worst first: never, then the oldest; what is deleted is not read', () => {
    expect(ages(all, NOW, 30).map((one) => `${one.lun.name} ${one.band}`)).toEqual(['never never', 'old overdue', 'late due', 'new fresh']);
    expect(ages(all, NOW, 30, ' LD ').map((one) => one.lun.name)).toEqual(['old']);
  });
  it('are as old as the schedule makes them', () => {
    expect([1, 7, 8, 14, 15].map((days) => bandOf(days * DAY, 7))).toEqual(['fresh', 'fresh', 'due', 'due', 'overdue']);
  });
  it('sort as a table with never as the oldest, and a clock that went back is no age below nothing', () => {
    const rows = sorted(ages(all, NOW, 30), COLUMNS, { key: 'age', down: true });
    expect(rows.map((one) => one.lun.name)).toEqual(['never', 'old', 'late', 'new']);
    expect(ages([lun('ahead', -1)], NOW, 30)[0]?.age).toBe(0);
    expect([undefined, 3 * DAY].map(ageSaid)).toEqual(['never', '3 d 0 h ago']);
  });
  it('of 10,000 LUNs are in order within a tenth of a second', () => {
    const many = Array.from({ length: 10_000 }, (_, i) => lun(`l${i}`, i % 97));
    // The best of ten: on a machine that is busy others come between.
    const took = Array.from({ length: 10 }, () => {
      const begun = performance.now();
      expect(ages(many, NOW, 30)).toHaveLength(10_000);
      return performance.now() - begun;
    });
    expect(Math.min(...took)).toBeLessThan(100);
  });
  it('have four forms, of which that of never is another one than that of long ago', () => {
    const looks = BANDS.map((band) => JSON.stringify([FORMS[band], bandState[band]]));
    expect(new Set(looks).size).toBe(BANDS.length);
    expect([FORMS.never.hollow, FORMS.overdue.hollow]).toEqual([true, undefined]);
    expect([FORMS.overdue, FORMS.due, FORMS.fresh].map((form) => form.part)).toEqual([1, 0.7, 0.45]);
  });
  it('are not late where there is no schedule', () => {
    const said = (days: number | undefined, has: boolean | undefined) => ages([lun('x', days)], NOW, 30).map((one) => scheduleSaid(one, 30, has))[0];
    expect([said(undefined, false), said(40, false), said(undefined, undefined), said(1, false)]).toEqual(['no schedule', '30 to 60 days ago', 'never', 'within 30 days']);
    // By how much, where there is one.
    expect([said(undefined, true), said(29, true), said(40, true), said(100.5, true)]).toEqual(['due now', 'within 30 days', 'due for 10 d 0 h', 'overdue by 70 d 12 h']);
  });
});
