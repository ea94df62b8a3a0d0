import { describe, expect, it } from 'vitest';
import type { Bay } from '../api/types.ts';
import { bayState, figures, trendOf, verdictState } from './disks.ts';

const trend = (of: string, per_week_thousandths?: number) => [{ of, ...(per_week_thousandths !== undefined && { per_week_thousandths }), samples: 5, days: 28 }];

describe('the trend of a figure', () => {
  it('has its sign and unit, stays where it does, and is nothing where it is not known', () => {
    expect(trendOf(trend('wear_percent', 254), 'wear_percent')).toBe('+0.25 % a week');
    expect(trendOf(trend('spare_percent', -2050), 'spare_percent')).toBe('−2.05 % a week');
    expect(trendOf(trend('media_errors', 12_000), 'media_errors')).toBe('+12.00 a week');
    expect(trendOf(trend('wear_percent', 4), 'wear_percent')).toBe('stays');
    expect([trendOf(trend('wear_percent'), 'wear_percent'), trendOf(trend('wear_percent', 5), 'crc_errors'), trendOf(undefined, 'x')]).toEqual(['', '', '']);
  });
  it('stands next to its figure', () => {
    expect(figures({ wear_percent: 3, power_cycles: 2 }, trend('wear_percent', 1000))).toEqual([
      ['Of the writes that it was made for', '3 %', '+1.00 % a week'],
      ['Switched on', '2 times', ''],
    ]);
  });
});

describe('a bay', () => {
  const bay = (state: Bay['state'], verdict?: 'failing' | 'replace_soon'): Bay => ({
    name: '2', enclosure: 'e', slot: '2', state, ...(verdict ? { finding: { verdict, cause: 'c', next_step: 'n' } } : {}),
  });
  it('is as bad as the alert of its finding: critical where something lay on its disk, else a warning', () => {
    expect(bayState(bay('dark', 'failing'))).toEqual({ state: 'bad', word: 'dark' });
    expect(bayState(bay('dark', 'replace_soon'))).toEqual({ state: 'warn', word: 'dark' });
    expect(bayState(bay('no_start', 'replace_soon'))).toEqual({ state: 'warn', word: 'does not start' });
  });
  it('with a disk in it may be faulty itself', () => {
    expect(bayState(bay('disk', 'replace_soon'))).toEqual({ state: 'warn', word: 'faulty' });
    expect(bayState(bay('disk'))).toEqual({ state: 'good', word: 'holds a disk' });
    expect(bayState(bay('empty'))).toEqual({ state: 'off', word: 'empty' });
  });
  it('and a disk have the state of their severity', () => {
    expect(verdictState('failing').state).toBe('bad');
    expect(verdictState('replace_soon').state).toBe('warn');
  });
});
