import { describe, expect, it } from 'vitest';
import type { Grant, Host, Lun, Refusal, Target } from '../api/types.ts';
import { allow } from './changes.ts';
import { choices, ownerOf, refusalOf, remedy } from './refusals.ts';

const hosts = [{ name: 'web', iqn: ['iqn.x:web'] }, { name: 'new', iqn: ['iqn.x:new'] }] as unknown as Host[];
const targets = [{ name: 'vms', iqn: 'iqn.t:vms', maintenance: true }, { name: 'db', iqn: 'iqn.t:db', maintenance: false }] as Target[];
const grants = [{ host: 'web', lun: 'www', target: 'vms' }, { host: 'web', lun: 'log', target: 'vms' }] as Grant[];
const luns = ['www', 'log', 'data'].map((name) => ({ name, state: 'online' })) as Lun[];
const of = (code: string, initiator = 'iqn.x:web', target = 'iqn.t:vms') => remedy({ code, initiator, target } as Refusal, { hosts, targets, grants });

describe('a refused login', () => {
  it('is allowed by a grant only where a grant was missing', () => {
    const all = ['CWY2001', 'CWY2002', 'CWY2003', 'CWY2004', 'CWY2005', 'CWY2006', 'CWY2007', 'CWY2008'];
    expect(all.filter((code) => of(code, 'iqn.x:stranger').does === 'allow')).toEqual(['CWY2003']);
    expect(all.filter((code) => !of(code).says)).toEqual([]);
  });
  it('with a wrong secret leads to the secret of its host', () => {
    expect(of('CWY2002')).toMatchObject({ link: { href: '/hosts/web?do=set', text: 'Set CHAP' } });
    expect(of('CWY2002', 'iqn.x:stranger').link).toBeUndefined();
  });
  it('in a maintenance that goes on ends it, and waits where it is over', () => {
    expect(of('CWY2007')).toMatchObject({ does: 'end maintenance', target: 'vms' });
    expect(of('CWY2007', 'iqn.x:web', 'iqn.t:db').does).toBeUndefined();
  });
  it('that may log in by now says so', () => {
    expect(of('CWY2003').does).toBeUndefined();
    expect(of('CWY2003', 'IQN.X:WEB', 'iqn.t:db').does).toBe('allow');
    // A grant to every initiator is not what one of them is allowed by.
    expect(ownerOf('iqn.y', [...hosts, { name: 'any', iqn: ['*'] } as Host])).toBeUndefined();
  });
});

describe('the refusal of an address', () => {
  const refused = (initiator: string, target: string, code = 'CWY2003') => ({ initiator, target, code }) as Refusal;
  const all = [refused('iqn.x:web', 'iqn.t:db'), refused('iqn.x:web', 'iqn.t:vms'), refused('iqn.x:new', 'iqn.t:vms'), refused('iqn.x:new', 'iqn.t:vms', 'CWY2002')];
  it('is the one of its target, where the initiator was refused at several', () => {
    expect(refusalOf(all, 'iqn.x:web', 'iqn.t:vms')).toBe(all[1]);
    expect(refusalOf(all, 'iqn.x:web', 'iqn.t:db')).toBe(all[0]);
    expect(refusalOf(all, 'iqn.x:web', 'iqn.t:gone')).toBeUndefined();
  });
  it('is none where the address leaves open which one of several is meant', () => {
    expect(refusalOf(all, 'iqn.x:web', '')).toBeUndefined();
    expect(refusalOf(all, 'iqn.x:new', '')).toBe(all[2]);
    expect(refusalOf(all, 'iqn.x:nobody', '')).toBeUndefined();
  });
});

describe('what it is given', () => {
  it('is what its host has already, or the only LUN that it can be; never one of several', () => {
    expect(choices(hosts[0], 'db', luns, grants)).toEqual({ luns: ['data', 'log', 'www'], own: ['log', 'www'], plain: ['log', 'www'] });
    expect(choices(hosts[1], 'vms', luns, grants)).toEqual({ luns: ['log', 'www', 'data'], own: [], plain: [] });
    expect(choices(undefined, 'vms', luns, grants.slice(1)).plain).toEqual(['log']);
    expect(choices(undefined, 'db', luns.slice(0, 1), []).plain).toEqual(['www']);
  });
  it('is all of it in one call', () => {
    const change = allow('iqn.x:web', 'web', ['log', 'www'], 'db', hosts);
    expect(change.body).toEqual({ grant: [{ host: 'web', lun: 'log', target: 'db' }, { host: 'web', lun: 'www', target: 'db' }] });
    expect(change.cli).toBe('causeway grant create web log --target db && causeway grant create web www --target db');
  });
});
