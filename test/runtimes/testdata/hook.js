globalThis.hook = 'loaded';
