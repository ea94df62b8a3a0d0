import { describe, expect, it } from 'vitest';
import type { ConfigView, SettingChange } from '../api/types.ts';
import { addPool, backSaid, comesIntoForce, hitSaid, listenWords, removePool, restartNode, setPortals, settingsChanged, setValue, valueToml, withPort } from './config_changes.ts';

describe('settings', () => {
  it('of portals are read as node.toml has them, and asked for as the daemon reads them', () => {
    const words = listenWords('[{ ip = "127.0.0.1", port = 3260 }, { ip = "2001:db8::1", port = 3261 }, { iface = "eth1" }]');
    expect(words).toEqual(['127.0.0.1:3260', '[2001:db8::1]:3261', 'eth1']);
    expect(['eth1', '192.0.2.1', '192.0.2.1:7', '2001:db8::1', '[2001:db8::1]:7'].map((one) => withPort(one, 3300, 3260))).toEqual([
      'eth1:3300', '192.0.2.1:3300', '192.0.2.1:7', '[2001:db8::1]:3300', '[2001:db8::1]:7',
    ]);
    expect(withPort('eth1', 3260, 3260)).toBe('eth1');
    expect(setPortals('default', ['192.0.2.1', 'eth1']).cli).toBe('causeway config set --portals 192.0.2.1,eth1 --portal-group default');
  });
  it('of a pool say nothing of a journal that there is none of', () => {
    expect(addPool({ name: 'fast', path: '/srv/fast', journal: '', size: '1GiB' }).body).toEqual({ add_pool: { name: 'fast', path: '/srv/fast' } });
    const { cli } = addPool({ name: 'fast', path: '/srv/a b', journal: '/j', size: '4GiB' });
    expect(cli).toBe("causeway config add-pool fast --path '/srv/a b' --journal /j --journal-size 4GiB");
  });
});

const view = (settings: Record<string, string>, changes: SettingChange[] = []) => ({ settings: Object.entries(settings).map(([key, value]) => ({ key, value })), changes }) as unknown as ConfigView;
const change = (key: string, in_file: string, takes_effect: 'now' | 'restart' = 'now'): SettingChange => ({ key, in_file, takes_effect });

describe('a setting', () => {
  it('goes to the daemon as the command line sends it', () => {
    const body = (text: string) => setValue('session.login_seconds', text).body;
    expect([' 5 ', 'true', '2GiB', ''].map(body)).toEqual([5, true, '2GiB', null].map((value) => ({ values: { 'session.login_seconds': value } })));
    expect(setValue('history.max_bytes', '2GiB').cli).toBe('causeway config set history.max_bytes=2GiB');
    expect([valueToml('history.max_bytes', '2GiB'), valueToml('health.every_minutes', '5')]).toEqual(['[history]\nmax_bytes = "2GiB"', '[health]\nevery_minutes = 5']);
  });
  it('is in effect at once, or after a restart', () => {
    const [now, later] = [change('a', '1'), change('b', '1', 'restart')];
    expect(comesIntoForce([now])).toMatch(/at once, and ends no session/);
    expect(comesIntoForce([later])).toMatch(/^It is kept .* restart/);
    expect(comesIntoForce([now, later])).toMatch(/^The rest is kept .* restart/);
  });
  it('that two admins changed stands with what it was, is, and shall be', () => {
    const before = view({ 'node.name': '"a"', 'scrub.every_days': '7', 'log.format': '"text"' });
    // What waits counts: it is what they said last.
    const theirs = view({ 'node.name': '"a"', 'scrub.every_days': '8', 'log.format': '"text"' }, [change('node.name', '"b"', 'restart')]);
    expect(settingsChanged(before, theirs, [change('scrub.every_days', '9')])).toEqual([
      { field: 'node.name', before: '"a"', theirs: '"b"', mine: '' },
      { field: 'scrub.every_days', before: '7', theirs: '8', mine: '9' },
    ]);
  });
});

describe('a pool that goes', () => {
  it('is asked for by its name, in words of the command line', () => {
    const change = removePool('fast');
    expect([change.cli, change.body, change.typed]).toEqual(['causeway config remove-pool fast', { remove_pool: 'fast' }, 'fast']);
  });
});

describe('a restart', () => {
  it('names each host that it hits, with its sessions and LUNs', () => {
    const hit = (ids: number[], luns: string[]) => hitSaid({ host: 'web', sessions: ids.map((id) => ({ id, initiator: 'iqn.x:web' })), luns });
    expect(hit([3], [])).toBe('web: session 3, no LUN');
    expect(hit([3, 4], ['a'])).toBe('web: sessions 3, 4, LUN a');
    expect(hit([3], ['a', 'b', 'c', 'd', 'e', 'f'])).toBe('web: session 3, LUNs a, b, c, d, e and 1 more');
  });
  it('says when it is over what it was waited for, and what is in effect since then', () => {
    const waited = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((key) => change(key, '1', 'restart'));
    expect(backSaid(0.2, [])).toBe('The daemon is back after 1 s: all settings are in effect.');
    expect(backSaid(3.4, [change('node.name', '"san-b"', 'restart'), { key: 'log.format', takes_effect: 'restart' }]))
      .toBe('The daemon is back after 3 s: what waited for it is now in effect: node.name: "san-b", log.format: nothing.');
    expect(backSaid(3.6, waited)).toBe('The daemon is back after 4 s: what waited for it is now in effect: a: 1, b: 1, c: 1, d: 1, e: 1 and 2 more.');
  });
  it('asks for the name of the node where hosts are logged in', () => {
    expect([restartNode('san-a', 0).typed, restartNode('san-a', 2).typed]).toEqual([undefined, 'san-a']);
  });
});
