import { describe, expect, it } from 'vitest';
import { leadOf } from './leads.ts';

const lead = (from: string, to: string, sessions?: number[]) => leadOf({ from, to, ...(sessions ? { sessions } : {}) }, (name) => name === 'fast');

describe('a line of the map', () => {
  it('leads to its sessions, wherever it begins', () => {
    expect(lead('host:web', 'port:web\neth0\niqn.w', [3, 4])).toEqual({ sessions: [3, 4] });
    expect(lead('more:host', 'portal:10.0.1.1:3260', [5])).toEqual({ sessions: [5] });
  });
  it('without sessions leads to the LUN, or to the pool', () => {
    expect(lead('node:san', 'lun:vm 1')).toEqual({ href: '/luns/vm%201' });
    expect(lead('lun:vm1', 'pool:fast')).toEqual({ href: '/luns/vm1' });
    expect(lead('pool:fast', 'disk:Z4')).toEqual({ href: '/pools/fast' });
    expect(lead('more:lun', 'pool:fast')).toEqual({ href: '/pools/fast' });
  });
  it('of a lost path leads to its host', () => {
    expect(lead('host:web', 'port:web\neth0\niqn.w')).toEqual({ href: '/hosts/web' });
    expect(lead('port:web\neth0\niqn.w', 'portal:10.0.1.1:3260', [])).toEqual({ href: '/hosts/web' });
  });
  it('of what has no page leads nowhere', () => {
    for (const [from, to] of [['node:san', 'more:lun'], ['more:pool', 'disk:Z4'], ['more:lun', 'pool:/dev/sdb'], ['portal:10.0.1.1:3260', 'node:san']] as const) expect(lead(from, to), `${from} ${to}`).toBeUndefined();
  });
});
