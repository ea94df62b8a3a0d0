import { describe, expect, it } from 'vitest';
import { KINDS, query, result } from './audit.ts';
import { kindWord, objectHref } from './objects.ts';

describe('the audit log', () => {
  it('shows the word that the daemon has for what came of it, with its colour', () => {
    const words = { did: 'made', about: 'LUN a', from: 'this machine, unix socket', result: 'begun' };
    expect([202, 409, 503].map((status) => result({ status, words }))).toEqual([{ state: 'good', word: 'begun' }, { state: 'warn', word: 'begun' }, { state: 'bad', word: 'begun' }]);
  });
  it('is filtered by each kind that there is', () => {
    for (const kind of ['alert', 'receiver', 'rule', 'silence', 'job', 'disk', 'bench run', 'lab bed']) expect(KINDS).toContain(kind);
    expect(query({ who: '', kind: 'bench run', name: '', result: '', since: '' }).getAll('filter')).toEqual(['kind:bench run']);
  });
});

describe('an object', () => {
  it('leads to its page, whatever it is', () => {
    const kinds = ['lun', 'host', 'target', 'pool', 'disk', 'job', 'initiator', 'portal', 'session', 'bay', 'certificate', 'user', 'token', 'rule', 'receiver', 'silence', 'alert'];
    expect(kinds.filter((kind) => !objectHref(kind, '7'))).toEqual([]);
    expect([objectHref('disk', 'a/b'), objectHref('grant', 'web:vms:lun'), objectHref('bench run', 'memory'), objectHref('file', 'x')]).toEqual(['/disks/a%2Fb', '/hosts/web', '/bench', undefined]);
    expect([kindWord('lun'), kindWord('host')]).toEqual(['LUN', 'host']);
  });
});
