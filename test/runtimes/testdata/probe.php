<?php
echo 'memory_limit=', ini_get('memory_limit'), "\n";
echo 'MALLOC_ARENA_MAX=', getenv('MALLOC_ARENA_MAX'), "\n";
