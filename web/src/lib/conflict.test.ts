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
  it('is none where only counters went on', () => {
    expect(differences(before, { ...before, in_flight: 9 }, undefined)).toEqual([]);
  });
});
