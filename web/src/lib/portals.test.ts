import { describe, expect, it } from 'vitest';
import type { Status } from '../api/types.ts';
import { portalNic } from './nics.ts';
import { groupsOf, isLoopback, nodeToml, poolToml, portalGroupToml } from './portals.ts';

describe('node.toml', () => {
  it('gets addresses and interfaces as the daemon reads them', () => {
    expect(portalGroupToml('storage', 2, ['192.0.2.1', 'eth1', '2001:db8::1'], 3260)).toBe(
      '[[portal_group]]\nname = "storage"\ntag = 2\nlisten = [\n  { ip = "192.0.2.1", port = 3260 },\n  { iface = "eth1", port = 3260 },\n  { ip = "2001:db8::1", port = 3260 },\n]',
    );
  });
  it('keeps what somebody typed inside of its quotes', () => {
    expect(nodeToml('a"\n[api]')).toBe('[node]\nname = "a\\"\\n[api]"');
    expect(poolToml('fast', '/srv/pool', '', '1G')).toBe('[[pool]]\nname = "fast"\npath = "/srv/pool"');
  });
});

describe('portals', () => {
  it('are grouped, and only loopback ones are for this machine alone', () => {
    const portals = [
      { group: 'a', tag: 1, address: '127.0.0.1:3260' },
      { group: 'b', tag: 2, address: '[::1]:3260' },
      { group: 'a', tag: 1, address: '192.0.2.1:3260' },
    ];
    expect(groupsOf(portals).map((group) => [group.name, group.portals.length])).toEqual([['a', 2], ['b', 1]]);
    expect(portals.map((portal) => isLoopback(portal.address))).toEqual([true, true, false]);
  });
  it('are on the interface that they follow, or on the one that has their address', () => {
    const status = { nics: [{ name: 'ens1f0', addresses: [{ address: '192.0.2.1', network: '192.0.2.0/24' }] }] } as unknown as Status;
    const portal = (address: string) => ({ group: 'a', tag: 1, address });
    expect(portalNic(status, portal('192.0.2.1:3260'))).toBe('ens1f0');
    expect(portalNic(status, { ...portal('192.0.2.1:3260'), interface: 'bond0' })).toBe('bond0');
    expect(portalNic(status, portal('192.0.2.2:3260'))).toBeUndefined();
    expect(portalNic(undefined, portal('192.0.2.1:3260'))).toBeUndefined();
  });
});
