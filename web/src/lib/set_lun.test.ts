import { describe, expect, it } from 'vitest';
import type { Lun } from '../api/types.ts';
import { lunFields, lunForm, lunWrong } from './set_lun.ts';

const before = lunForm({ name: 'a', limit: { iops: 500, bytes_per_second: 1 << 20 }, shares: 7, read_cache: '1G', bytes_in_flight_max: 4096 } as unknown as Lun);
const wrong = (typed: Partial<typeof before>) => Object.entries(lunWrong({ ...before, ...typed })).filter(([, said]) => said).map(([field]) => field);

describe('settings of a LUN', () => {
  it('are sent where they differ, as numbers', () => {
    expect(lunFields(before, before)).toEqual({});
    expect(lunFields({ ...before, iops: '5k', shares: '10,000' }, before)).toEqual({ limit: { iops: 5_000 }, shares: 10_000 });
    expect(lunFields({ ...before, bytes_per_second: '2M', in_flight: '8M', read_cache: '2G' }, before)).toEqual({ limit: { bytes_per_second: '2M' }, bytes_in_flight_max: '8M', read_cache: '2G' });
  });
  it('are taken away by nothing, and never by what is no number: that is said', () => {
    expect(lunFields({ ...before, iops: '', shares: ' ', bytes_per_second: '', in_flight: '', read_cache: '' }, before))
      .toEqual({ limit: { iops: null, bytes_per_second: null }, shares: null, bytes_in_flight_max: 0, read_cache: 0 });
    for (const typed of ['abc', '0', '1.5', '5 k']) {
      expect(wrong({ iops: typed }), typed).toEqual(['iops']);
      expect(wrong({ shares: typed }), typed).toEqual(['shares']);
      expect(lunFields({ ...before, iops: typed, shares: typed }, before), typed).toEqual({ limit: { iops: undefined }, shares: undefined });
    }
    expect(wrong({ shares: '10001' })).toEqual(['shares']);
    for (const field of ['bytes_per_second', 'in_flight', 'read_cache'] as const) expect(wrong({ [field]: 'abc' })).toEqual([field]);
    expect(wrong({})).toEqual([]);
  });
});
