import { describe, expect, it } from 'vitest';
import { endOtherSessions } from './account_changes.ts';
import { allow, confirmation, createShare, curl, isForced, purgeLun, removeLun, setLun, shownLine, word, type ShareForm } from './changes.ts';
import { bytes, count, latency, parseSize } from './format.ts';

const form: ShareForm = {
  name: 'vm01', size: '10G', hosts: ['esx01'], target: '', pool: '', blockSize: 512, thin: true, integrity: false,
};
const hosts = [{ name: 'esx01', iqn: ['iqn.1998-01.com.vmware:esx01'], sessions: 0, redundancy: { connected: false, least_paths: 0 } }];

describe('a share', () => {
  it('is a LUN, a target and grants in one request', () => {
    const change = createShare(form, hosts, []);
    expect(change.body).toEqual({
      lun: [{ name: 'vm01', size: '10G' }],
      target: [{ name: 'vm01' }],
      grant: [{ host: 'esx01', lun: 'vm01', target: 'vm01' }],
    });
    expect(change.cli).toBe('causeway share create vm01 --size 10G --for esx01');
    const stable = createShare({ ...form, pool: 'fast', cache: 'write-through' }, hosts, []);
    expect(stable.body).toMatchObject({ lun: [{ pool: 'fast', cache: 'write-through' }] });
    expect(stable.cli).toContain('--pool fast --cache write-through');
  });
  it('makes a host for an initiator that nobody has', () => {
    const change = createShare({ ...form, hosts: ['iqn.2026-01.org:web', 'IQN.1998-01.com.vmware:esx01', '*'] }, hosts, []);
    expect(change.body).toMatchObject({
      host: [{ name: 'web', iqn: ['iqn.2026-01.org:web'] }, { name: 'everyone', iqn: ['*'] }],
      grant: [{ host: 'web' }, { host: 'esx01' }, { host: 'everyone' }],
    });
  });
});

describe('a change', () => {
  it('never lets a name out of its place in a command line or a path', () => {
    expect(word("a'; rm -rf /")).toBe(`'a'\\''; rm -rf /'`);
    expect(removeLun('a/../b').path).toBe('luns/a%2F..%2Fb');
    expect(curl(allow("x'y", '', ['l'], 't', []), 'http://h')).toContain(`x'\\''y`);
  });
  it('that was confirmed says so in both lines, and has the proof that it takes', () => {
    const purge = purgeLun('a');
    const forced = isForced(purge, confirmation(purge));
    expect(shownLine(purge, forced)).toBe('causeway lun purge a --yes');
    expect(curl(purge, 'http://h', forced)).toMatch(/^curl -X POST 'http:\/\/h\/api\/v1\/luns\/a\/purge\?force=true' /);
    const cut = setLun('a', { cache: 'volatile' });
    expect(isForced(cut, confirmation(cut))).toBe(false);
    expect(isForced(cut, confirmation(cut, 'Refused: …'))).toBe(true);
    const own = curl(endOtherSessions('eve', 2), 'http://h');
    expect(own).toContain('causeway-session=$COOKIE');
    expect(own).not.toContain('$TOKEN');
  });
  it('of fields names what is lifted', () => {
    expect(setLun('a', { shares: null, limit: { iops: 5, bytes_per_second: null } }).cli).toBe(
      'causeway lun set a shares=none limit.iops=5 limit.bytes_per_second=none',
    );
  });
});

describe('figures', () => {
  it('are binary, with three digits that mean something', () => {
    expect([0, 512, 1023, 1024, 1536, 9.3 * 2 ** 30].map(bytes)).toEqual(['0 B', '512 B', '1,023 B', '1 KiB', '1.5 KiB', '9.3 GiB']);
    expect([0, 7, 9999, 10_000, 123_456, 1_250_000].map(count)).toEqual(['0', '7', '9,999', '10.0 k', '123 k', '1.25 M']);
    expect([64, 1500, 2_000_000, undefined].map(latency)).toEqual(['64 µs', '1.5 ms', '2 s', '–']);
  });
  it('are read as the daemon reads them', () => {
    expect(['10G', '1.5GiB', '10GB', 4096, '10 X', ''].map(parseSize)).toEqual([10 * 2 ** 30, 1.5 * 2 ** 30, 1e10, 4096, undefined, undefined]);
  });
});
