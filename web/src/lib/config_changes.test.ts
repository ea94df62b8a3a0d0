import { describe, expect, it } from 'vitest';
import { addPool, listenWords, restartNode, setPortals, withPort } from './config_changes.ts';

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

describe('a restart', () => {
  it('asks for the name of the node where hosts are logged in', () => {
    expect([restartNode('san-a', 0).typed, restartNode('san-a', 2).typed]).toEqual([undefined, 'san-a']);
  });
});
