// Short notes at the edge of the page, which go by themselves.

const SHOWN_MS = 5_000;

class Notes {
  all = $state.raw<{ id: number; text: string }[]>([]);
  private next = 0;

  say(text: string): void {
    const id = this.next++;
    this.all = [...this.all, { id, text }];
    setTimeout(() => (this.all = this.all.filter((note) => note.id !== id)), SHOWN_MS);
  }
}

export const notes = new Notes();
