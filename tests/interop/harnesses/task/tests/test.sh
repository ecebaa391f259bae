#!/bin/bash
cd /app && python3 -c "import calc; assert calc.add(2, 3) == 5" && reward=1 || reward=0
echo $reward > /logs/verifier/reward.txt
