import { describe, expect, it } from 'vitest';
import { figures, trendOf } from './disks.ts';

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
