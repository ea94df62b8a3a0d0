import { describe, expect, it } from 'vitest';
import { differences } from './conflict.ts';

const before = { name: 'vm01', size: '10 GiB', limit: { iops: 500 }, in_flight: 3, cache: 'write-back' };

describe('a conflict', () => {
  it('shows what the other changed and what I want, and no counters', () => {
    const theirs = { ...before, limit: { iops: 900 }, in_flight: 77 };
    expect(differences(before, theirs, { shares: 20, limit: { iops: 100 } })).toEqual([
      { field: 'limit.iops', before: '500', theirs: '900', mine: '100' },
      { field: 'shares', before: '–', theirs: '–', mine: '20' },
    ]);
  });
  it('has what was taken away, by either', () => {
    const theirs = { ...before, limit: {} };
    expect(differences(before, theirs, { limit: null })).toEqual([
      { field: 'limit.iops', before: '500', theirs: '–', mine: '–' },
      { field: 'limit.bytes_per_second', before: '–', theirs: '–', mine: '–' },
      { field: 'limit.burst_seconds', before: '–', theirs: '–', mine: '–' },
    ]);
  });
  it('knows the new name of a rename, and that deleting wants nothing of a field', () => {
    const theirs = { ...before, cache: 'volatile' };
    expect(differences(before, theirs, { to: 'vm02' }).map((one) => [one.field, one.mine])).toEqual([['name', 'vm02'], ['cache', '']]);
    expect(differences(before, theirs, undefined)).toEqual([{ field: 'cache', before: 'write-back', theirs: 'volatile', mine: '' }]);
  });
  it('has the bounds of a rule, and which rules a receiver is for', () => {
    const rule = (value: number) => ({ severity: 'warning', bounds: { above_percent: { value, default: 80, least: 1, most: 99 } } });
    expect(differences(rule(80), rule(90), { severity: 'critical', bounds: { above_percent: 70 } })).toEqual([
      { field: 'severity', before: 'warning', theirs: 'warning', mine: 'critical' },
      { field: 'bounds.above_percent', before: '80', theirs: '90', mine: '70' },
    ]);
    const receiver = (rules: string[]) => ({ least: 'info', rules, webhook: { at: 'https://a/…' } });
    expect(differences(receiver([]), receiver(['lun_slow', 'x']), { least: 'info' })).toEqual([
      { field: 'least', before: 'info', theirs: 'info', mine: 'info' },
      { field: 'rules', before: '–', theirs: 'lun_slow, x', mine: '' },
    ]);
  });
  it('is none where only counters went on', () => {
    expect(differences(before, { ...before, in_flight: 9 }, undefined)).toEqual([]);
  });
});
