import { describe, expect, it } from 'vitest';
import { about, did, KINDS, query, shortPath } from './audit.ts';
import { kindWord, objectHref } from './objects.ts';

const act = (method: string, path: string, asked?: unknown) => did({ method, path: `/api/v1/${path}`, asked });

describe('the audit log', () => {
  it('says in plain words what somebody did', () => {
    expect(act('POST', 'luns/vm01/scrub', { operation: 'start' })).toBe('started a scrub of');
    expect(act('POST', 'luns/vm01/scrub', { operation: 'stop' })).toBe('stopped a scrub of');
    expect(act('POST', 'pools/p/journal', { operation: 'discard' })).toBe('discarded the journal of');
    expect(act('POST', 'luns/vm01/resize?force=false')).toBe('changed the size of');
    expect([act('PATCH', 'luns/vm01'), act('DELETE', 'luns/vm01'), act('POST', 'luns')]).toEqual(['changed', 'deleted', 'made']);
    expect([act('POST', 'alerts/7/acknowledge'), act('POST', 'alerts/receivers/mail/test'), act('POST', 'jobs/3/cancel')]).toEqual(['acknowledged', 'tested', 'cancelled']);
    expect([act('DELETE', 'sessions/4'), act('POST', 'bench/runs'), act('POST', 'lab/beds/1/links'), act('DELETE', 'tokens/x')]).toEqual(['ended', 'started', 'changed a link of', 'took back']);
    expect([act('POST', 'login'), act('PUT', 'me/password'), act('PUT', 'users/eve/password')]).toEqual(['logged in', 'changed their own password', 'changed the password of']);
    // A LUN may have the name of an act.
    expect(act('PATCH', 'luns/rename')).toBe('changed');
  });
  it('is about what its path names, where the entry does not say it', () => {
    const of = (path: string, asked?: unknown) => {
      const found = about({ path: `/api/v1/${path}`, asked });
      return found && `${found.kind} ${found.name}`;
    };
    expect(['alerts/rules/pool_filling', 'alerts/receivers/a%20b/test', 'alerts/silences/3', 'alerts/7/acknowledge', 'jobs/4/cancel', 'disks/X'].map((path) => of(path))).toEqual([
      'rule pool_filling', 'receiver a b', 'silence 3', 'alert 7', 'job 4', 'disk X',
    ]);
    expect(of('alerts/receivers', { name: 'mail' })).toBe('receiver mail');
    expect(of('objects')).toBeUndefined();
    expect(about({ path: '/api/v1/luns/x', object: { kind: 'lun', name: 'x' } })).toEqual({ kind: 'lun', name: 'x' });
  });
  it('hides options that are off', () => {
    expect(shortPath('/api/v1/luns/vm01?force=false&dry_run=false')).toBe('luns/vm01');
    expect(shortPath('/api/v1/luns/vm01?force=true&dry_run=false')).toBe('luns/vm01?force=true');
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
