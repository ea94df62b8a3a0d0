// Where the page of an object is, by its kind. Pure.

const OWN = ['lun', 'host', 'target', 'pool', 'disk', 'job', 'alert'];

export function objectHref(kind: string, name: string): string | undefined {
  const named = encodeURIComponent(name);
  if (OWN.includes(kind)) return `/${kind}s/${named}`;
  switch (kind) {
    case 'initiator': return `/hosts?view=refused&q=${named}`;
    case 'session': return `/hosts?view=sessions&session=${named}`;
    case 'grant': return `/hosts/${encodeURIComponent(name.split(':', 1)[0] ?? '')}`;
    case 'portal': return '/targets?view=portals';
    case 'bay': return '/disks';
    case 'certificate': return '/settings/certificate';
    case 'user': return '/settings/users';
    case 'token': return '/settings/tokens';
    case 'rule': return `/alerts?show=rules&rule=${named}`;
    case 'receiver': return '/alerts?show=receivers';
    case 'silence': return '/alerts?show=silences';
    case 'bench run': return /^\d+$/.test(name) ? `/bench/${named}` : '/bench';
    case 'lab bed': return /^\d+$/.test(name) ? `/lab/${named}` : '/lab';
    case 'node': return '/';
    default: return undefined;
  }
}

/** A kind as a sentence has it. */
export function kindWord(kind: string): string {
  return kind === 'lun' ? 'LUN' : kind;
}
