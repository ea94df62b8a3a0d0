import { describe, expect, it } from 'vitest';
import { diff } from './diff.ts';

describe('what differs between two documents', () => {
  it('is named member by member, and what is the same is left out', () => {
    const before = { name: 'vm01', size: 64, limit: { iops: 500 }, iqn: ['a', 'b'] };
    const after = { name: 'vm01', size: 128, limit: { iops: 500, burst: 2 }, iqn: ['a'] };
    expect(diff(before, after)).toEqual([
      { field: 'size', before: '64', after: '128' },
      { field: 'iqn', before: 'a, b', after: 'a' },
      { field: 'limit.burst', before: undefined, after: '2' },
    ]);
  });
  it('knows elements of a list by their names, so that one that is gone is not all of the others', () => {
    const before = { lun: [{ name: 'a', size: 1 }, { name: 'b', size: 2 }] };
    expect(diff(before, { lun: [{ name: 'b', size: 2 }] }).map((one) => one.field)).toEqual(['lun.a.name', 'lun.a.size']);
  });
  it('is all of what was made or taken away', () => {
    expect(diff(undefined, { size: 1 })).toEqual([{ field: 'size', before: undefined, after: '1' }]);
    expect(diff('x', null)).toEqual([{ field: 'value', before: 'x', after: undefined }]);
    expect(diff(null, undefined)).toEqual([]);
  });
});
